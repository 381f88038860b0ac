#include <benchmark/benchmark.h>
#include <hiredis/hiredis.h>

#include <stdexcept>

#include "loadgen/histogram.h"
#include "loadgen/metered_env.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"
#include "testbed/redis_server.h"

// What the harness adds to a lock: an acquisition and release of redis-set-nx-lua as a client of a
// run makes them, against the same two commands on bare hiredis, on the same private server.

namespace lockbench {
namespace {

constexpr std::string_view kKey = "lockbench:bench:{key}";

/// Started by whoever needs it first and stopped with the program.
const testbed::RedisServer& server() {
  static const auto bed = testbed::Testbed::start();
  if (!bed) throw std::runtime_error(bed.error());
  static const auto redis = testbed::start_redis(**bed, {.durable = false});
  if (!redis) throw std::runtime_error(redis.error());
  return **redis;
}

/// A run's client: strategy, connection, meter.
class HarnessClient {
 public:
  HarnessClient() : endpoints_{{"redis", {server().url()}}} {}

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
  MeteredEnv env_{*world_};
  std::unique_ptr<LockStrategy> lock_ = make_strategy(
      *find_strategy("redis-set-nx-lua"),
      {.endpoints = endpoints_, .options = options_, .env = env_, .services = services_});
  AcquireRequest request_{.key = kKey, .ttl = std::chrono::seconds(10)};
};

/// The same commands by hand.
class BareClient {
 public:
  BareClient() : context_(redisConnect("127.0.0.1", server().port())) {
    if (!context_ || context_->err != 0) throw std::runtime_error("no connection");
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

template <class Client>
void timed(Client& client, HistogramSnapshot& times) {
  const auto start = std::chrono::steady_clock::now();
  client.acquire_and_release();
  times.record(std::chrono::steady_clock::now() - start);
}

/// In turn, so that both meet the same machine; an iteration is one of each.
void harness_against_hiredis(benchmark::State& state) {
  HarnessClient harness;
  BareClient bare;
  harness.acquire_and_release();  // the server learns the script
  const std::uint64_t commands_before = harness.commands();
  HistogramSnapshot harness_times, bare_times;
  bool harness_first = true;
  while (state.KeepRunning()) {
    if (harness_first) timed(harness, harness_times);
    timed(bare, bare_times);
    if (!harness_first) timed(harness, harness_times);
    harness_first = !harness_first;
  }
  const auto microseconds = [](const HistogramSnapshot& times) {
    return static_cast<double>(times.percentile(0.5).count()) * 1e-3;
  };
  state.counters["harness_p50_us"] = microseconds(harness_times);
  state.counters["hiredis_p50_us"] = microseconds(bare_times);
  state.counters["overhead"] = microseconds(harness_times) / microseconds(bare_times) - 1;
  state.counters["commands"] = static_cast<double>(harness.commands() - commands_before) /
                               static_cast<double>(state.iterations());
}
BENCHMARK(harness_against_hiredis)->Name("set_nx_lua/harness_against_hiredis")->UseRealTime();

}  // namespace
}  // namespace lockbench
