#include <benchmark/benchmark.h>
#include <hiredis/hiredis.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "loadgen/record/histogram.h"
#include "loadgen/record/metered_env.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"
#include "testbed/servers/kinds.h"

// The harness's overhead: acquisition and release of redis-set-nx-lua as a run's client makes them,
// against the same two commands on bare hiredis, on the same private server.

namespace lockbench {
namespace {

/// A run's client on one lock: strategy, connections, meter.
class HarnessClient {
 public:
  HarnessClient(std::string_view strategy, Endpoints endpoints, std::string key)
      : endpoints_(std::move(endpoints)),
        lock_(make_strategy(
            *find_strategy(strategy),
            {.endpoints = endpoints_, .options = options_, .env = env_, .services = services_})),
        key_(std::move(key)) {}

  void acquire_and_release() {
    request_.deadline = env_.now() + std::chrono::seconds(30);
    const AcquireResult granted = lock_->acquire(request_);
    if (!granted.lease) throw std::runtime_error("not acquired: " + granted.reason);
    const ReleaseResult released = lock_->release(*granted.lease);
    if (released.outcome != ReleaseOutcome::released) throw std::runtime_error("not released");
  }

  std::uint64_t commands() const { return env_.effort().commands; }

 private:
  const Endpoints endpoints_;
  const StrategyOptions options_;
  Services services_;
  std::unique_ptr<Env> world_ = make_system_env(1);
  loadgen::MeteredEnv env_{*world_};
  std::unique_ptr<LockStrategy> lock_;
  const std::string key_;
  AcquireRequest request_{.key = key_, .ttl = std::chrono::seconds(10)};
};

/// Measures the harness and a client that sends the same commands directly, in turn, so that both
/// meet the same machine state. An iteration is one acquisition and release of each.
template <class Bare>
void in_turn(benchmark::State& state, HarnessClient& harness, Bare& bare) {
  const auto timed = [](auto& client, loadgen::HistogramSnapshot& times) {
    const auto start = std::chrono::steady_clock::now();
    client.acquire_and_release();
    times.record(std::chrono::steady_clock::now() - start);
  };
  harness.acquire_and_release();  // the server learns scripts and statements
  const std::uint64_t commands_before = harness.commands();
  loadgen::HistogramSnapshot harness_times, bare_times;
  bool harness_first = true;
  while (state.KeepRunning()) {
    if (harness_first) timed(harness, harness_times);
    timed(bare, bare_times);
    if (!harness_first) timed(harness, harness_times);
    harness_first = !harness_first;
  }
  const auto microseconds = [](Duration time) { return static_cast<double>(time.count()) * 1e-3; };
  const auto mean = benchmark::Counter::kAvgThreads;
  state.counters["harness_p50_us"] = {microseconds(harness_times.percentile(0.5)), mean};
  state.counters["bare_p50_us"] = {microseconds(bare_times.percentile(0.5)), mean};
  state.counters["harness_mean_us"] = {microseconds(harness_times.mean()), mean};
  state.counters["bare_mean_us"] = {microseconds(bare_times.mean()), mean};
  state.counters["commands"] = {static_cast<double>(harness.commands() - commands_before) /
                                    static_cast<double>(state.iterations()),
                                mean};
}

constexpr std::string_view kKey = "lockbench:bench:{key}";

/// Starts on first use and stops with the program.
const testbed::Server& server() {
  static const auto bed = testbed::Testbed::start();
  if (!bed) throw std::runtime_error(bed.error());
  static const auto redis = testbed::start_redis(**bed, {.durable = false});
  if (!redis) throw std::runtime_error(redis.error());
  return **redis;
}

/// Sends the same commands directly.
class BareClient {
 public:
  BareClient() : context_(redisConnect("127.0.0.1", server().port())) {
    if (!context_ || context_->err != 0) throw std::runtime_error("no connection");
    command("AUTH %s %s", std::string(testbed::kUser).c_str(), server().secret().c_str());
    command("SCRIPT LOAD %s", std::string(redis::scripts::release_if_token.source).c_str());
  }

  void acquire_and_release() {
    const ReplyPtr set = command("SET %s %s NX PX 10000", key_.c_str(), token_.c_str());
    if (set->type != REDIS_REPLY_STATUS) throw std::runtime_error("not acquired");
    const ReplyPtr freed =
        command("EVALSHA %s 1 %s %s", sha1_.c_str(), key_.c_str(), token_.c_str());
    if (freed->integer != 1) throw std::runtime_error("not released");
  }

 private:
  struct Deleter {
    void operator()(redisContext* context) const { redisFree(context); }
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using ReplyPtr = std::unique_ptr<redisReply, Deleter>;

  template <class... Words>
  ReplyPtr command(const char* format, const Words*... words) {
    ReplyPtr reply(static_cast<redisReply*>(redisCommand(context_.get(), format, words...)));
    if (!reply) throw std::runtime_error(context_->errstr);
    return reply;
  }

  const std::unique_ptr<redisContext, Deleter> context_;
  const std::string key_{kKey}, token_ = std::string(32, 'a');
  const std::string sha1_{redis::scripts::release_if_token.sha1};
};

void harness_against_hiredis(benchmark::State& state) {
  HarnessClient harness("redis-set-nx-lua", {{"redis", {server().url()}}}, std::string(kKey));
  BareClient bare;
  in_turn(state, harness, bare);
}
BENCHMARK(harness_against_hiredis)->Name("set_nx_lua/harness_against_hiredis")->UseRealTime();

}  // namespace
}  // namespace lockbench
