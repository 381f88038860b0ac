#include "embed/lockbench/lock.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <stdexcept>

#include "strategies/observer.h"
#include "strategies/registry.h"
#include "strategies/store.h"
#include "strategies/words.h"

namespace lockbench::embed {
namespace {

using namespace std::string_view_literals;

constexpr std::array kOutcomes{"acquired"sv, "taken"sv, "failed"sv, "unknown"sv};
constexpr std::array kReleases{"released"sv, "not_owner"sv, "failed"sv};
constexpr std::array kRenewals{"renewed"sv, "not_owner"sv, "failed"sv};

/// From a store on the same machine to minutes of work.
const prometheus::Histogram::BucketBoundaries& bounds() {
  static const prometheus::Histogram::BucketBoundaries seconds{
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
      0.25,   0.5,     1,      2.5,   5,      10,    30,   60,    120,  300};
  return seconds;
}

template <class Builder>
auto& family(Builder builder, std::string_view name, const char* help,
             prometheus::Registry& registry) {
  return builder.Name("lockbench_lock_" + std::string(name)).Help(help).Register(registry);
}

}  // namespace

/// What happens to the locks. Thread-safe, as its metrics are.
class Metrics final : public StrategyObserver {
 public:
  Metrics(std::string_view strategy, std::shared_ptr<prometheus::Registry> registry)
      : strategy_(strategy),
        registry_(std::move(registry)),
        acquired_(family(prometheus::BuildHistogram(), "acquire_seconds",
                         "Time from the wish for a lock to its grant or failure.", *registry_)),
        held_(family(prometheus::BuildHistogram(), "held_seconds",
                     "Time from the grant of a lock to its release.", *registry_)),
        renewals_(family(prometheus::BuildCounter(), "renewals_total", "Renewals of held locks.",
                         *registry_)),
        failures_(family(prometheus::BuildCounter(), "service_failures_total",
                         "Failures of threads that renew locks or listen.", *registry_)) {}

  void acquired(Outcome outcome, Duration taken) {
    observe(acquired_, word_of<Outcome::unknown>(kOutcomes, outcome), taken);
  }
  void held(ReleaseOutcome outcome, Duration taken) {
    observe(held_, word_of<ReleaseOutcome::failed>(kReleases, outcome), taken);
  }
  void renewed(RenewOutcome outcome) {
    if (outcome == RenewOutcome::unsupported) return;
    count_renewal(word_of<RenewOutcome::failed>(kRenewals, outcome));
  }
  void on_renewal(const RenewalReport& report) override {
    count_renewal(word_of<RenewalAnswer::failed>(kRenewals, report.outcome));
  }
  void service_failed() { failures_.Add({{"strategy", strategy_}}).Increment(); }

 private:
  prometheus::Labels labels(std::string_view outcome) const {
    return {{"strategy", strategy_}, {"outcome", std::string(outcome)}};
  }
  void observe(prometheus::Family<prometheus::Histogram>& of, std::string_view outcome,
               Duration taken) {
    of.Add(labels(outcome), bounds()).Observe(seconds(taken));
  }
  void count_renewal(std::string_view outcome) { renewals_.Add(labels(outcome)).Increment(); }

  const std::string strategy_;
  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Family<prometheus::Histogram>&acquired_, &held_;
  prometheus::Family<prometheus::Counter>&renewals_, &failures_;
};

/// Has at most one lock at a time.
struct Client {
  std::unique_ptr<Env> env;
  std::unique_ptr<LockStrategy> strategy;
};

namespace {

class CountingFailures final : public ForwardingEnv {
 public:
  explicit CountingFailures(Metrics& metrics)
      : ForwardingEnv(make_system_env(random_seed())), metrics_(metrics) {}
  void report(const std::string& /*failure*/) override { metrics_.service_failed(); }

 private:
  Metrics& metrics_;
};

const Descriptor& strategy_of(const std::string& name) {
  const Descriptor* const strategy = Registration::find(name);
  if (strategy == nullptr) throw std::invalid_argument("no strategy is called \"" + name + '"');
  if (strategy->not_built.empty()) return *strategy;
  throw std::invalid_argument(name + " is not available: " + std::string(strategy->not_built));
}

Endpoints checked_endpoints(const Descriptor& strategy, const std::vector<std::string>& urls) {
  const StoreKind* const kind = find_store_kind(strategy.backend);
  const std::string name(strategy.name);
  if (kind == nullptr) {
    if (!urls.empty()) throw std::invalid_argument(name + " has no servers");
    return {};
  }
  if (urls.empty()) throw std::invalid_argument(name + " needs the URL of a server");
  for (const std::string& url : urls) {
    if (const auto shown = kind->display(url); !shown) throw std::invalid_argument(shown.error());
  }
  return {{std::string(strategy.backend), urls}};
}

Outcome outcome_of(const AcquireResult& result) {
  switch (result.outcome) {
    case AcquireOutcome::acquired:
      return Outcome::acquired;
    case AcquireOutcome::timed_out:
      return Outcome::taken;
    // With a reason it was not as safe as it should be.
    case AcquireOutcome::refused:
      return result.reason.empty() ? Outcome::taken : Outcome::failed;
    case AcquireOutcome::unknown:
      return Outcome::unknown;
    case AcquireOutcome::failed:
    case AcquireOutcome::abandoned:
      break;
  }
  return Outcome::failed;
}

}  // namespace

/// The clients of a Locks, and what they share. Lives as long as one of its locks.
class Pool {
 public:
  Pool(const Settings& settings, std::shared_ptr<prometheus::Registry> registry)
      : strategy_(strategy_of(settings.strategy)),
        endpoints_(checked_endpoints(strategy_, settings.urls)),
        options_{.command_timeout = settings.store_timeout},
        ttl_(settings.ttl),
        metrics_(std::make_shared<Metrics>(settings.strategy, std::move(registry))) {
    if (ttl_ <= Duration::zero() || settings.store_timeout <= Duration::zero()) {
      throw std::invalid_argument("TTL and store timeout must be above zero");
    }
    services_.provide<StrategyObserver>(metrics_);
    services_.provide(std::make_shared<EnvSource>(
        EnvSource{[this] { return std::make_unique<CountingFailures>(*metrics_); }}));
  }

  Duration ttl() const { return ttl_; }
  Metrics& metrics() const { return *metrics_; }

  /// An idle client, or a new one.
  StoreResult<std::unique_ptr<Client>> take() {
    int number = 0;
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Client> client = std::move(idle_.back());
        idle_.pop_back();
        return client;
      }
      number = clients_++;
    }
    auto client = std::make_unique<Client>();
    client->env = std::make_unique<CountingFailures>(*metrics_);
    client->strategy = make_strategy(strategy_, {.endpoints = endpoints_,
                                                 .options = options_,
                                                 .env = *client->env,
                                                 .services = services_,
                                                 .client = number,
                                                 .ttl = ttl_});
    return client->strategy->connect().map([&] { return std::move(client); });
  }

  void give_back(std::unique_ptr<Client> client) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(client));
  }

 private:
  const Descriptor& strategy_;
  const Endpoints endpoints_;
  const StrategyOptions options_;
  const Duration ttl_;
  const std::shared_ptr<Metrics> metrics_;
  Services services_;
  std::mutex mutex_;
  int clients_ = 0;
  // Last, as clients use all of the above.
  std::vector<std::unique_ptr<Client>> idle_;
};

class Grant {
 public:
  explicit Grant(std::shared_ptr<Pool> from) : pool(std::move(from)) {}
  Grant(const Grant&) = delete;
  Grant& operator=(const Grant&) = delete;
  ~Grant() {
    try {
      release();
    } catch (const std::exception&) {
      // No memory, or a mistake in a strategy: the TTL ends the lock.
      pool->metrics().service_failed();
    }
  }

  bool release() {
    if (!lease) return false;
    const ReleaseResult result = client->strategy->release(*lease);
    pool->metrics().held(result.outcome, BootClock::now() - granted_at);
    reason = result.outcome == ReleaseOutcome::not_owner ? "the lock was lost before its release"
                                                         : result.reason;
    lease.reset();
    pool->give_back(std::move(client));
    return result.outcome == ReleaseOutcome::released;
  }

  const std::shared_ptr<Pool> pool;
  std::unique_ptr<Client> client;  ///< null without a lease
  std::optional<Lease> lease;
  TimePoint granted_at{};
  Outcome outcome = Outcome::failed;
  std::string reason;
};

Lock::Lock(std::unique_ptr<Grant> grant) : grant_(std::move(grant)) {}
Lock::Lock(Lock&& other) noexcept = default;
Lock& Lock::operator=(Lock&& other) noexcept = default;
Lock::~Lock() = default;

Outcome Lock::outcome() const { return grant_->outcome; }
Lock::operator bool() const { return grant_->lease.has_value(); }
const std::string& Lock::reason() const { return grant_->reason; }

std::optional<std::uint64_t> Lock::fencing() const {
  return grant_->lease ? grant_->lease->fencing : std::nullopt;
}

bool Lock::valid() const {
  return grant_->lease && grant_->lease->state->valid_at(BootClock::now());
}

bool Lock::renew(std::chrono::nanoseconds ttl) {
  if (!grant_->lease) return false;
  // Beside a timer, which asks for the lock's own TTL, the one that arrives last would win.
  const RenewResult result = grant_->lease->renewal
                                 ? RenewResult{RenewOutcome::unsupported, {}}
                                 : grant_->client->strategy->renew(*grant_->lease, ttl);
  grant_->pool->metrics().renewed(result.outcome);
  grant_->reason = result.outcome == RenewOutcome::not_owner     ? "the lock is lost"
                   : result.outcome == RenewOutcome::unsupported ? "this lock needs no renewal"
                                                                 : result.reason;
  return result.outcome == RenewOutcome::renewed;
}

bool Lock::release() { return grant_->release(); }

Locks::Locks(const Settings& settings, std::shared_ptr<prometheus::Registry> metrics)
    : pool_(std::make_shared<Pool>(settings, std::move(metrics))) {
  auto first = pool_->take();
  if (!first) throw std::runtime_error(first.error().message);
  pool_->give_back(*std::move(first));
}

Lock Locks::acquire(std::string_view key, std::chrono::nanoseconds wait) const {
  const TimePoint begin = BootClock::now();
  auto grant = std::make_unique<Grant>(pool_);
  auto client = pool_->take();
  if (client) {
    // Not of a run: nothing removes it. It is within the least rights of docs/operations.md.
    const std::string name = "lockbench:embedded:{" + std::string(key) + '}';
    AcquireResult result = (*client)->strategy->acquire(
        {.key = name,
         .ttl = pool_->ttl(),
         .deadline = begin + std::clamp<Duration>(wait, Duration::zero(), kLongestDuration)});
    grant->outcome = outcome_of(result);
    grant->reason = std::move(result.reason);
    if (result.lease) {
      grant->lease = std::move(result.lease);
      grant->client = *std::move(client);
      grant->granted_at = BootClock::now();
    } else {
      pool_->give_back(*std::move(client));
    }
  } else {
    grant->reason = client.error().message;
  }
  pool_->metrics().acquired(grant->outcome, BootClock::now() - begin);
  return Lock(std::move(grant));
}

}  // namespace lockbench::embed
