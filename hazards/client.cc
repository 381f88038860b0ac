#include "hazards/client.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

#include "hazards/fault_env.h"
#include "loadgen/record/redis_counter.h"
#include "loadgen/run/client_threads.h"
#include "strategies/observer.h"
#include "strategies/registry.h"

namespace lockbench::hazards {
namespace {

using Json = nlohmann::json;

/// Requests from the play's process, and the answers to them; a message is one read or write.
class MessageSocket {
 public:
  MessageSocket(int in, int out) : in_(in), out_(out) {}

  /// Empty at the end of the input.
  std::optional<std::string> receive() {
    std::string message(kLongestMessage, '\0');
    ssize_t size = 0;
    do {
      size = read(in_, message.data(), message.size());
    } while (size < 0 && errno == EINTR);
    if (size <= 0) return std::nullopt;
    message.resize(static_cast<std::size_t>(size));
    return message;
  }

  void send(const Json& message) {
    const std::string text = message.dump();
    if (write(out_, text.data(), text.size()) < 0) _exit(1);  // the reader has gone
  }

 private:
  const int in_, out_;
};

std::int64_t nanoseconds(TimePoint time) { return time.time_since_epoch().count(); }

Json optional_nanoseconds(std::optional<TimePoint> time) {
  return time ? Json(nanoseconds(*time)) : Json(nullptr);
}

/// Null if the lock does not expire.
Json valid_until_of(const Lease& lease) {
  const TimePoint end = lease.state ? lease.state->valid_until() : TimePoint::max();
  return end == TimePoint::max() ? Json(nullptr) : Json(nanoseconds(end));
}

StrategyOptions options_of(const Json& who) {
  StrategyOptions options;
  options.command_timeout = Duration(who.at("command_timeout_ns").get<std::int64_t>());
  if (!who.at("renew").get<bool>()) options.renew = RenewPolicy{.kind = RenewPolicy::Kind::off};
  if (!who.at("wait").is_null()) {
    auto policy = parse_wait_policy(who.at("wait").get<std::string>());
    if (!policy) throw std::runtime_error(policy.error());
    options.wait = *policy;
  }
  const auto duration_if_any = [&](const char* name) -> std::optional<Duration> {
    if (who.at(name).is_null()) return std::nullopt;
    return Duration(who.at(name).get<std::int64_t>());
  };
  options.renew_cap = duration_if_any("renew_cap_ns");
  options.node_timeout = duration_if_any("node_timeout_ns");
  options.wait_replicas = who.at("wait_replicas").get<int>();
  return options;
}

/// Counts the rounds of votes that one acquisition takes on a quorum. Not thread-safe.
class RoundCounter : public StrategyObserver {
 public:
  void on_round(bool split, std::optional<Duration> /*validity*/) override {
    ++rounds_;
    split_ += split ? 1 : 0;
  }
  int take_rounds() { return std::exchange(rounds_, 0); }
  int take_split() { return std::exchange(split_, 0); }

 private:
  int rounds_ = 0, split_ = 0;
};

class Client {
 public:
  Client(const Json& who, MessageSocket& socket)
      : options_(options_of(who)),
        env_(make_system_env(std::random_device()()),
             [&socket] {
               socket.send({{"event", "waiting"}});
             }),
        counter_url_(who.at("counter").get<std::string>()),
        checks_fencing_(who.at("checks_fencing").get<bool>()) {
    for (const auto& [backend, urls] : who.at("endpoints").items()) {
      endpoints_[backend] = urls.get<std::vector<std::string>>();
    }
    services_.provide<StrategyObserver>(rounds_);
    const Descriptor* const strategy = find_strategy(who.at("strategy").get<std::string>());
    if (strategy == nullptr) throw std::runtime_error("no such strategy");
    strategy_ = make_strategy(*strategy, {.endpoints = endpoints_,
                                          .options = options_,
                                          .env = env_,
                                          .services = services_,
                                          .client = who.at("client").get<int>()});
    if (auto reached = strategy_->connect(); !reached) {
      throw std::runtime_error(reached.error().message);
    }
    env_.take_count();
  }

  Json serve(const Json& request) {
    const auto what = request.at("do").get<std::string>();
    if (what == "acquire") return acquire(request);
    if (what == "release") return release(request);
    if (what == "renew") return renew(request);
    if (what == "read") return read(request);
    if (what == "write") return write(request);
    if (what == "belief") return belief(request);
    if (what == "arm") return arm(request);
    if (what == "shift_clock") {
      env_.shift_wall_clock(Duration(request.at("by_ns").get<std::int64_t>()));
      return Json::object();
    }
    throw std::runtime_error("no such request: " + what);
  }

 private:
  Lease& lease(const Json& request) { return leases_.at(request.at("lease").get<int>()); }

  Json acquire(const Json& request) {
    const auto key = request.at("key").get<std::string>();
    if (request.contains("at_ns")) {
      plain_->wait(nullptr, TimePoint(Duration(request.at("at_ns").get<std::int64_t>())), {});
    }
    const TimePoint asked_at = env_.now();
    const Duration wait(request.at("wait_ns").get<std::int64_t>());
    env_.expect_wait(wait > Duration::zero());
    env_.take_count();
    AcquireResult result =
        strategy_->acquire({.key = key,
                            .ttl = Duration(request.at("ttl_ns").get<std::int64_t>()),
                            .deadline = asked_at + wait});
    env_.expect_wait(false);
    Json answer = {{"outcome", static_cast<int>(result.outcome)},
                   {"asked_ns", nanoseconds(asked_at)},
                   {"answered_ns", nanoseconds(env_.now())},
                   {"commands", env_.take_count()},
                   {"rounds", rounds_->take_rounds()},
                   {"split_votes", rounds_->take_split()},
                   {"reason", result.reason}};
    if (!result.lease) return answer;
    if (request.contains("release_at_once")) (void)strategy_->release(*result.lease);
    answer["lease"] = next_lease_;
    answer["valid_until_ns"] = valid_until_of(*result.lease);
    answer["fencing"] = result.lease->fencing ? Json(*result.lease->fencing) : Json(nullptr);
    leases_.emplace(next_lease_++, *std::move(result.lease));
    return answer;
  }

  Json release(const Json& request) {
    env_.take_count();
    const ReleaseResult result = strategy_->release(lease(request));
    return {{"outcome", static_cast<int>(result.outcome)},
            {"answered_ns", nanoseconds(env_.now())},
            {"commands", env_.take_count()},
            {"reason", result.reason}};
  }

  Json renew(const Json& request) {
    const RenewResult result =
        strategy_->renew(lease(request), Duration(request.at("ttl_ns").get<std::int64_t>()));
    return {{"outcome", static_cast<int>(result.outcome)},
            {"answered_ns", nanoseconds(env_.now())},
            {"reason", result.reason}};
  }

  Json belief(const Json& request) {
    const Lease& lease = this->lease(request);
    const TimePoint give_up_at = env_.now() + Duration(request.at("within_ns").get<std::int64_t>());
    TimePoint now = env_.now();
    for (; lease.state->valid_at(now) && now < give_up_at; now = env_.now()) {
      plain_->wait(nullptr, now + std::chrono::milliseconds(1), {});
    }
    return {{"valid", lease.state->valid_at(now)},
            {"valid_until_ns", valid_until_of(lease)},
            {"lost_at_ns", optional_nanoseconds(lease.state->lost_at())},
            {"now_ns", nanoseconds(now)}};
  }

  Json arm(const Json& request) {
    env_.arm({.action = static_cast<CommandFault::Action>(request.at("action").get<int>()),
              .command = request.at("command").get<int>(),
              .place = static_cast<CommandFault::Place>(request.at("place").get<int>())});
    return Json::object();
  }

  Json read(const Json& request) {
    reading_ = loadgen::Reading{};
    auto reading = session(request).read(0, fencing(request));
    if (!reading) throw std::runtime_error(reading.error());
    reading_ = *reading;
    return {{"value", reading->value}};
  }

  Json write(const Json& request) {
    const loadgen::WriteResult result = session(request).write(0, reading_, fencing(request));
    return {{"result", static_cast<int>(result)}, {"answered_ns", nanoseconds(plain_->now())}};
  }

  std::optional<std::uint64_t> fencing(const Json& request) { return lease(request).fencing; }

  /// The counter of the current key. It uses an Env without faults: faults strike the lock's
  /// commands only.
  loadgen::CounterSession& session(const Json& request) {
    const auto key = request.at("key").get<std::string>();
    if (session_ && counted_key_ == key) return *session_;
    session_.reset();
    auto endpoint = redis::parse_endpoint(counter_url_);
    if (!endpoint) throw std::runtime_error(endpoint.error());
    auto counter =
        loadgen::make_redis_counter({.connections = services_.get_or_make<redis::ConnectionFactory>(
                                         redis::make_connection_factory),
                                     .endpoint = *endpoint,
                                     .env = *plain_,
                                     .key_name = [name = key + ":counter"](int) { return name; },
                                     .checks_fencing = checks_fencing_});
    if (!counter) throw std::runtime_error(counter.error());
    counter_ = *std::move(counter);
    counted_key_ = key;
    session_ = counter_->open(*plain_);
    return *session_;
  }

  Endpoints endpoints_;
  const StrategyOptions options_;
  FaultEnv env_;
  const std::string counter_url_;
  const bool checks_fencing_;
  const std::unique_ptr<Env> plain_ = make_system_env(std::random_device()());
  const std::shared_ptr<RoundCounter> rounds_ = std::make_shared<RoundCounter>();
  Services services_;
  std::unique_ptr<LockStrategy> strategy_;
  std::map<int, Lease> leases_;  ///< destroyed before the strategy and its services
  int next_lease_ = 0;
  std::unique_ptr<loadgen::Counter> counter_;
  std::string counted_key_;
  std::unique_ptr<loadgen::CounterSession> session_;
  loadgen::Reading reading_;
};

/// The client of this process, on the calling thread or on a fiber of another one.
class Host {
 public:
  explicit Host(MessageSocket& socket) : socket_(socket) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() {
    (void)run([this] { client_.reset(); });
  }

  /// The first request makes the client.
  void answer(const Json& request) {
    if (!client_ && request.value("clients_on", "threads") == "fibers") {
      auto made = loadgen::ClientThreads::of_fibers(1, std::nullopt);
      if (!made) throw std::runtime_error(made.error());
      fibers_ = *std::move(made);
    }
    const auto failure = run([&] {
      if (client_) return socket_.send(client_->serve(request));
      client_ = std::make_unique<Client>(request, socket_);
      socket_.send(Json::object());
    });
    if (!failure.empty()) throw std::runtime_error(failure);
  }

 private:
  /// Returns when it is done, with what it threw.
  std::string run(const std::function<void()>& work) {
    std::string failure;
    const auto body = [&](const std::stop_token& /*stop*/) {
      try {
        work();
      } catch (const std::exception& error) {
        failure = error.what();
      }
    };
    if (!fibers_) {
      body({});
      return failure;
    }
    auto task = fibers_->start(0, body, [](const std::string& /*why*/) {});
    if (!task) return task.error();
    task->reset();  // waits for its end
    return failure;
  }

  MessageSocket& socket_;
  std::optional<loadgen::ClientThreads> fibers_;  ///< nothing: the calling thread
  std::unique_ptr<Client> client_;
};

}  // namespace

int serve_client(int in, int out) {
  // A stopped process would outlive its parent otherwise. The parent thread is the play's; if it
  // ended before this call, `in` is closed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);
  MessageSocket socket(in, out);
  Host host(socket);
  while (const auto request = socket.receive()) {
    try {
      host.answer(Json::parse(*request));
    } catch (const std::exception& error) {
      socket.send({{"error", error.what()}});
    }
  }
  return 0;
}

}  // namespace lockbench::hazards
