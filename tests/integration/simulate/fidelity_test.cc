#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "loadgen/run/duration_distribution.h"
#include "simulate/redis/model.h"
#include "strategies/carrier.h"
#include "strategies/number.h"
#include "strategies/redis/client/connection.h"
#include "strategies/redis/scripts.h"
#include "testbed/process/shims.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"

namespace lockbench::simulate {
namespace {

using namespace std::chrono_literals;
using redis::Reply;

using Line = std::vector<std::string>;

// TTLs are k thousand and 410 seconds, and clocks jump by thousands of seconds: so neither a TTL,
// nor twice or four times it, ends near a jump, and the seconds that the test takes change no
// answer but a time that is left.
constexpr std::int64_t kUnit = 1'000'000;  // milliseconds
constexpr std::int64_t kTakes = 300'000;   // likewise
constexpr std::int64_t kMicroseconds = 1000;

class RandomCommands {
 public:
  explicit RandomCommands(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t count) { return random_() % count; }

  Line next() {
    if (in_transaction_ && below(3) == 0) return end_transaction();
    switch (below(14)) {
      case 0:
        return {"SET", text_key(), value()};
      case 1:
        return set();
      case 2:
        return expiry();
      case 3:
        return on_texts();
      case 4:
      case 5:
        return on_hashes();
      case 6:
      case 7:
        return on_lists();
      case 8:
      case 9:
        return on_sets();
      case 10:
        return transaction();
      case 11:
        return wrong();
      default:
        return script();
    }
  }

  /// What is left open at the end.
  Line end_transaction() {
    in_transaction_ = false;
    return {pick({"EXEC", "EXEC", "EXEC", "DISCARD"})};
  }
  bool in_transaction() const { return in_transaction_; }

 private:
  std::string pick(const std::vector<std::string>& all) { return all[below(all.size())]; }
  std::string key(const char* kind) { return fmt::format("{}{}", kind, below(4)); }
  std::string text_key() { return key("text"); }
  /// Rarely of another type.
  std::string key_of(const char* kind) {
    return below(12) == 0 ? key(pick({"text", "hash", "list", "set"}).c_str()) : key(kind);
  }
  std::string value() {
    return pick({"a", "b", "", "7", "-3", "007", "9223372036854775807", "x y"});
  }
  std::string number() { return pick({"1", "2", "-1", "0", "5", "100", "x", "1.5", "+1", ""}); }
  std::string score() {
    return pick({"1", "2", "2.5", "-1", "1e3", "inf", "-inf", "x", "1700000000000000"});
  }
  std::string milliseconds() { return seconds() + "000"; }
  std::string seconds() { return std::to_string(1000 * static_cast<int>(1 + below(5)) + 410); }

  Line set() {
    Line line{"SET", key_of("text"), value()};
    for (std::size_t i = below(3); i > 0; --i) line.push_back(pick({"NX", "nx", "WRONG"}));
    const auto timed = below(6);
    if (timed < 2) line.insert(line.end(), {"PX", milliseconds()});
    if (timed == 2) line.insert(line.end(), {"EX", seconds()});
    if (timed == 3) line.insert(line.end(), {"PX", pick({"-1", "0", "x", "1.5", "+1", ""})});
    return line;
  }
  Line expiry() {
    const std::string any = key(pick({"text", "hash", "list", "set"}).c_str());
    switch (below(5)) {
      case 0:
        return {"PEXPIRE", any, milliseconds()};
      case 1:
        return {"EXPIRE", any, seconds()};
      case 2:
        return {pick({"PEXPIRE", "EXPIRE", "PEXPIREAT"}), any, pick({"-1", "0", "x", "-1000"})};
      default:
        return {pick({"PTTL", "EXISTS"}), any};
    }
  }
  Line on_texts() {
    switch (below(6)) {
      case 0:
        return {"SETNX", key_of("text"), value()};
      case 1:
        return {"GETSET", key_of("text"), value()};
      case 2:
        return {"INCR", key_of("text")};
      case 3:
        return {pick({"DEL", "UNLINK", "EXISTS"}), text_key(), key("hash"), text_key()};
      default:
        return {"GET", key_of("text")};
    }
  }
  Line on_hashes() {
    const std::string hash = key_of("hash"), field = pick({"a", "b", "c"});
    switch (below(6)) {
      case 0:
        return {"HSET", hash, field, value(), "b", value()};
      case 1:
        return {"HINCRBY", hash, field, number()};
      case 2:
        return {"HDEL", hash, field, "a"};
      case 3:
        return {"HEXISTS", hash, field};
      case 4:
        return {"HSET", hash, field};
      default:
        return {"HGET", hash, field};
    }
  }
  Line on_lists() {
    const std::string list = key_of("list");
    switch (below(6)) {
      case 0:
      case 1:
        return {"RPUSH", list, value(), value()};
      case 2:
        return {"BLPOP", list, "0.001"};
      case 3:
        return {"EXISTS", list, list};
      case 4:
        return {"BLPOP", list, key("list"), pick({"0.001", "x", "-1"})};
      default:
        return {"RPUSH", list, value()};
    }
  }
  Line on_sets() {
    const std::string set = key_of("set"), member = pick({"a", "b", "c", "d"});
    switch (below(9)) {
      case 0:
      case 1:
        return {"ZADD", set, score(), member, score(), "b"};
      case 2:
        return {"ZREM", set, member, "c"};
      case 3:
        return {pick({"ZRANGE", "ZREVRANGE"}), set, pick({"0", "1", "-2", "x"}),
                pick({"-1", "0", "5"}), pick({"WITHSCORES", "withscores", "WRONG"})};
      case 4:
        return {pick({"ZRANGE", "ZREVRANGE"}), set, "0", "-1"};
      case 5:
        return {"ZSCORE", set, member};
      case 6:
        return {"ZRANK", set, member};
      case 7:
        return {"ZREMRANGEBYSCORE", set, pick({"-inf", "1", "x"}), pick({"2", "2.5", "+inf", "0"})};
      default:
        return {"ZRANGE", set, "0", "-1"};
    }
  }
  Line transaction() {
    if (below(4) == 0) return {pick({"EXEC", "DISCARD"})};
    in_transaction_ = true;
    return {"MULTI"};
  }
  Line wrong() {
    switch (below(6)) {
      case 0:
        return {"GET"};
      case 1:
        return {"SET", "text0"};
      case 2:
        return {"NOSUCH", "a", "b"};
      case 3:
        return {"ping"};
      case 4:
        return {"PUBLISH", "nobody", "hears"};
      default:
        return {"EVALSHA", "0000000000000000000000000000000000000000", "0"};
    }
  }

  Line run(const redis::Script& script, const Line& keys, const Line& args) {
    Line line{below(4) == 0 ? "EVAL" : "EVALSHA", "", std::to_string(keys.size())};
    line[1] = std::string(line[0] == "EVAL" ? script.source : script.sha1);
    line.insert(line.end(), keys.begin(), keys.end());
    line.insert(line.end(), args.begin(), args.end());
    return line;
  }
  Line script() {
    namespace scripts = redis::scripts;
    const std::string owner = pick({"a", "b", "c"});
    switch (below(11)) {
      case 0:
        return run(scripts::release_if_token, {key_of("text")}, {owner});
      case 1:
        return run(scripts::renew_if_token, {key_of("text")}, {owner, milliseconds()});
      case 2:
        return run(scripts::reentrant_acquire, {key_of("hash")}, {owner, milliseconds()});
      case 3:
        return run(scripts::reentrant_release, {key_of("hash")},
                   {owner, milliseconds(), "channel"});
      case 4:
        return run(scripts::reentrant_renew, {key_of("hash")}, {owner, milliseconds()});
      case 5:
        return run(scripts::fenced_acquire, {key_of("text"), "number"}, {owner, milliseconds()});
      case 6: {
        const std::string command = pick({"write", "read", "release", "leave"});
        Line args{owner, milliseconds(), command};
        if (command == "write") args.push_back(pick({"0", milliseconds()}));
        return run(scripts::read_write, {"rw"}, args);
      }
      case 7:
        return run(scripts::put_if_same, {key_of("text")}, {value(), pick({"", value()})});
      case 8: {
        Line args{owner, milliseconds(), pick({"acquire", "acquire", "release"}), "2"};
        if (below(3) == 0) args.resize(2);
        return run(scripts::semaphore, {"semaphore"}, args);
      }
      default: {
        const Line keys{"q", "q:queue", "q:liveness", "q:numbers"};
        const std::string command = pick({"ask", "ask", "release", "leave"});
        Line args{command, owner};
        if (command == "ask") {
          args.insert(args.end(), {milliseconds(), milliseconds(), pick({"0", "1"})});
        }
        return run(scripts::queue, keys, args);
      }
    }
  }

  Random random_;
  bool in_transaction_ = false;
};

/// Whether both are the same, or times that are left and differ by what the test takes.
bool close_to(std::int64_t a, std::int64_t b) {
  if (a == b) return true;
  const std::int64_t apart = std::abs(a - b);
  const bool in_seconds = std::max(std::abs(a), std::abs(b)) < kTakes;
  return in_seconds ? apart < kTakes / 1000 && std::min(a, b) > kTakes / 1000 : apart < kTakes;
}

bool same(const Reply& a, const Reply& b) {
  if (a.type != b.type || a.elements.size() != b.elements.size()) return false;
  if (a.type == Reply::Type::integer) return close_to(a.integer, b.integer);
  const auto time = parse_number<std::int64_t>(a.text), other = parse_number<std::int64_t>(b.text);
  const bool times = time && other && *time > kUnit * kMicroseconds;
  if (times ? std::abs(*time - *other) >= kTakes * kMicroseconds : a.text != b.text) return false;
  return std::ranges::equal(a.elements, b.elements, same);
}

std::string shown(const Reply& reply) {
  std::string text =
      fmt::format("{} {} \"{}\"", static_cast<int>(reply.type), reply.integer, reply.text);
  for (const Reply& element : reply.elements) text += " [" + shown(element) + "]";
  return text;
}

TEST(Fidelity, AHundredThousandRandomCommandsGetTheAnswersOfARealServer) {
  const auto clock = test::must(testbed::ClockShim::make(test::shared_testbed()));
  const auto server = test::own_redis({.durable = false, .clock = clock.get()});
  const auto env = make_system_env(1);
  const auto factory = redis::make_connection_factory();
  const auto connection =
      factory->make(test::must(redis::parse_endpoint(server->url())), 30s, *env);
  RandomCommands commands(20261129);
  RedisModel model;
  RedisModel::Session session;
  // The real server's wall clock.
  WallTime now = env->wall_now();
  Duration ahead{};
  constexpr int kBatches = 1000, kBatch = 100, kBatchesPerJump = 20;
  constexpr std::size_t kMostShown = 20;
  std::vector<std::string> differences;
  for (int batch = 0; batch < kBatches && differences.size() < kMostShown; ++batch) {
    if (batch % kBatchesPerJump == kBatchesPerJump - 1) {
      const Duration jump = 1000s * static_cast<int>(1 + commands.below(3));
      ahead += jump;
      now += jump;
      clock->set(ahead);
    }
    std::vector<Line> lines;
    lines.reserve(kBatch + 1);
    for (int i = 0; i < kBatch; ++i) lines.push_back(commands.next());
    if (commands.in_transaction()) lines.push_back(commands.end_transaction());
    for (const Line& line : lines) {
      const std::vector<std::string_view> words(line.begin(), line.end());
      connection->queue(words);
    }
    for (const Line& line : lines) {
      const std::vector<std::string_view> words(line.begin(), line.end());
      const Reply model_says = model.execute(session, words, now);
      const auto real = connection->receive();
      Reply real_says;
      if (real) {
        real_says = *real;
      } else {
        ASSERT_EQ(real.error().kind, StoreError::Kind::rejected) << real.error().message;
        real_says = {.type = Reply::Type::error,
                     .text = real.error().message.substr(connection->display().size() + 2)};
      }
      // As the connection shows it.
      Reply expected = model_says;
      if (expected.type == Reply::Type::error) expected.text = printable(expected.text);
      if (same(expected, real_says) || differences.size() >= kMostShown) continue;
      differences.push_back(fmt::format("{}: model {}, server {}", fmt::join(line, " "),
                                        shown(expected), shown(real_says)));
    }
  }
  EXPECT_THAT(differences, testing::IsEmpty());
}

}  // namespace
}  // namespace lockbench::simulate
