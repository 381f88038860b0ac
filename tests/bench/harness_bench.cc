#include <benchmark/benchmark.h>
#include <hiredis/hiredis.h>

#include <stdexcept>

#include "strategies/redis/scripts.h"
#include "testbed/servers/kinds.h"
#include "tests/bench/harness.h"

// What the harness adds to a lock: an acquisition and release of redis-set-nx-lua as a client of a
// run makes them, against the same two commands on bare hiredis, on the same private server.

namespace lockbench {
namespace {

constexpr std::string_view kKey = "lockbench:bench:{key}";

/// Started by whoever needs it first and stopped with the program.
const testbed::Server& server() {
  static const auto bed = testbed::Testbed::start();
  if (!bed) throw std::runtime_error(bed.error());
  static const auto redis = testbed::start_redis(**bed, {.durable = false});
  if (!redis) throw std::runtime_error(redis.error());
  return **redis;
}

/// The same commands by hand.
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
