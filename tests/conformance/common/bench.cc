#include "tests/conformance/common/bench.h"

#include <algorithm>
#include <array>

#include "tests/support/fiber_lock.h"

namespace lockbench::test {
namespace {

/// A different seed for each client, even with equal numbers, as in two processes.
std::uint64_t next_seed() {
  static std::atomic<std::uint64_t> made{0};
  return 0x9E3779B97F4A7C15ULL * ++made;
}

std::vector<std::string> urls_of(TestStore& tested) {
  const auto servers = tested.servers();
  std::vector<std::string> urls;
  urls.reserve(servers.size());
  for (testbed::Server* server : servers) urls.push_back(url_of(server->port()));
  return urls;
}

std::atomic<int> impatient_tests = 0;

/// Unless a test sets its own values: a long timeout, so that pauses of a busy machine do not
/// matter, and all replicas must acknowledge.
StrategyOptions completed(const Descriptor& descriptor, StrategyOptions options) {
  const StrategyOptions defaults;
  if (options.command_timeout == defaults.command_timeout) options.command_timeout = kPatience / 2;
  if (options.after_stop == defaults.after_stop) options.after_stop = seconds(20);
  if (options.wait_timeout == defaults.wait_timeout) options.wait_timeout = seconds(20);
  if (is_quorum(descriptor) && !options.node_timeout) options.node_timeout = seconds(20);
  if (descriptor.traits.needs_replicas && !options.wait_replicas) {
    options.wait_replicas = shared_store().replicas();
  }
  return options;
}

}  // namespace

Duration patience() { return impatient_tests > 0 ? seconds(5) : kPatience; }
bool comes_true(const std::function<bool()>& condition) {
  return eventually(condition, std::chrono::floor<milliseconds>(patience()));
}
Impatience::Impatience() { ++impatient_tests; }
Impatience::~Impatience() { --impatient_tests; }

Client::Client(const Descriptor& descriptor, const Endpoints& endpoints,
               const StrategyOptions& options, Services& services, int number)
    : system_(make_system_env(next_seed())),
      faults_(*system_),
      trace_(faults_),
      lock_(make_carried(descriptor, Context{.endpoints = endpoints,
                                             .options = options,
                                             .env = trace_,
                                             .services = services,
                                             .client = number})) {}

AcquireResult Client::try_once(const std::string& key, Duration ttl) {
  return lock_->acquire({.key = key, .ttl = ttl, .deadline = now(), .stop = {}});
}

AcquireResult Client::acquire(const std::string& key, Duration longest, Duration ttl,
                              const std::stop_token& stop, Mode mode) {
  return lock_->acquire(
      {.key = key, .ttl = ttl, .deadline = now() + longest, .mode = mode, .stop = stop});
}

void Client::give_back(const Lease& lease) {
  const ReleaseOutcome got = release(lease);
  if (got != ReleaseOutcome::released) throw Broken(fmt::format("release gave {}", name_of(got)));
}

Bench::Bench(const Descriptor& descriptor, const StrategyOptions& options)
    : Bench(descriptor, shared_store(), options) {}

Bench::Bench(const Descriptor& descriptor, TestStore& tested, const StrategyOptions& options)
    : Bench(descriptor, urls_of(tested), options) {
  tested.clear();
}

Bench::Bench(const Descriptor& descriptor, std::string url, const StrategyOptions& options)
    : Bench(descriptor, std::vector<std::string>{std::move(url)}, options) {}

Bench::Bench(const Descriptor& descriptor, std::vector<std::string> urls,
             const StrategyOptions& options)
    : descriptor_(descriptor),
      endpoints_{{std::string(descriptor.backend), std::move(urls)}},
      options_(completed(descriptor, options)) {
  services_.provide<EnvSource>(worlds_.source());
}

std::unique_ptr<Client> Bench::client() {
  auto made = unconnected_client();
  if (const auto connected = made->connect(); !connected) {
    throw std::runtime_error("cannot connect: " + connected.error().message);
  }
  return made;
}

std::unique_ptr<Client> Bench::unconnected_client() {
  return std::make_unique<Client>(descriptor_, endpoints_, options_, services_, ++clients_);
}

std::unique_ptr<LockStrategy> Bench::lock_on(Env& env) {
  return make_carried(descriptor_, {.endpoints = endpoints_,
                                    .options = options_,
                                    .env = env,
                                    .services = services_,
                                    .client = ++clients_});
}

std::vector<std::string> Bench::named_keys() const {
  std::vector<std::string> keys;
  for (const std::string_view suffix : descriptor_.key_suffixes) {
    keys.push_back(key_ + std::string(suffix));
  }
  return keys;
}

bool Bench::is_held() {
  const auto stranger = client();
  const AcquireResult result = stranger->try_once(key_);
  if (!result.lease) return true;
  stranger->release(*result.lease);
  return false;
}

bool Bench::becomes_free() {
  return comes_true([this] { return !is_held(); });
}

StrategyOptions waiting_by(const Descriptor& descriptor, WaitPolicy policy) {
  StrategyOptions options;
  const auto& choices = descriptor.traits.waiting_choices;
  if (std::find(choices.begin(), choices.end(), policy.kind) != choices.end()) {
    options.wait = policy;
  }
  return options;
}

StrategyOptions impatient(const Descriptor& descriptor) {
  return waiting_by(descriptor, WaitPolicy::poll(milliseconds(2)));
}

StrategyOptions unrenewed(StrategyOptions options) {
  options.renew = RenewPolicy{.kind = RenewPolicy::Kind::off};
  return options;
}

StrategyOptions renewed_every(Duration period) {
  return {.renew = RenewPolicy{.kind = RenewPolicy::Kind::every, .period = period}};
}

StrategyOptions notified() { return {.wait = WaitPolicy::notify()}; }

bool can_notify(const Descriptor& descriptor) {
  const auto& choices = descriptor.traits.waiting_choices;
  return descriptor.traits.waiting.kind == WaitKind::notify ||
         std::find(choices.begin(), choices.end(), WaitKind::notify) != choices.end();
}

std::unique_ptr<testbed::Proxy> proxy_to(std::uint16_t port) {
  static const auto pool = must(testbed::ProxyPool::start());
  return must(testbed::start_proxy(*pool, port));
}

std::unique_ptr<Store> store_at(std::uint16_t port) {
  const std::string_view backend = tested_backends().front();
  return find_store_kind(backend.substr(0, backend.find('-')))->make(url_of(port), kPatience);
}

void warm_up(Client& client, const std::string& key) {
  const AcquireResult result = client.try_once(key);
  if (result.lease) client.release(*result.lease);
}

bool has_store(const Descriptor& descriptor) { return descriptor.backend != "local"; }

bool is_quorum(const Descriptor& descriptor) { return descriptor.traits.nodes > 1; }

std::vector<std::string> shared_endpoints() {
  const auto servers = shared_store().servers();
  std::vector<std::string> endpoints;
  endpoints.reserve(servers.size());
  for (testbed::Server* server : servers) {
    endpoints.push_back(fmt::format("127.0.0.1:{}", server->port()));
  }
  return endpoints;
}

bool waits_at_the_server(const Descriptor& descriptor) {
  const Traits& traits = descriptor.traits;
  return traits.expiry == Expiry::session && traits.waiting.kind == WaitKind::queue;
}

bool has_hazard(const Descriptor& descriptor, std::string_view scenario, HazardOutcome outcome) {
  return std::any_of(descriptor.hazards.begin(), descriptor.hazards.end(),
                     [&](const KnownHazard& hazard) {
                       return hazard.scenario == scenario && hazard.outcome == outcome;
                     });
}

std::string_view name_of(AcquireOutcome outcome) {
  constexpr std::array<std::string_view, 6> kNames{"acquired", "timed_out", "refused",
                                                   "failed",   "unknown",   "abandoned"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

std::string_view name_of(ReleaseOutcome outcome) {
  constexpr std::array<std::string_view, 3> kNames{"released", "not_owner", "failed"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

std::string_view name_of(RenewOutcome outcome) {
  constexpr std::array<std::string_view, 4> kNames{"renewed", "not_owner", "failed", "unsupported"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

std::string unexpected(const AcquireResult& got, AcquireOutcome wanted) {
  return fmt::format("acquire gave {} {}, not {}", name_of(got.outcome), got.reason,
                     name_of(wanted));
}

Lease granted(AcquireResult result, const std::string& when) {
  if (!result.lease) throw Broken(when + unexpected(result, AcquireOutcome::acquired));
  return *std::move(result.lease);
}

}  // namespace lockbench::test
