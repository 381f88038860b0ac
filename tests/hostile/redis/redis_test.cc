// Servers that answer with anything but what a command calls for, at each point of every lock on
// Redis.

#include <gtest/gtest.h>

#include "tests/hostile/redis/redis_speaker.h"
#include "tests/support/hostile_life.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// ":7\r\n" with a number in this range.
bool is_number(std::string_view sent, std::int64_t least) {
  if (!sent.starts_with(':') || !sent.ends_with("\r\n")) return false;
  std::int64_t number = 0;
  const char* const end = sent.data() + sent.size() - 2;
  const auto [stopped, error] = std::from_chars(sent.data() + 1, end, number);
  return error == std::errc() && stopped == end && number >= least;
}

bool is_nil(std::string_view sent) { return sent == "$-1\r\n" || sent == "*-1\r\n"; }
bool is_ok(std::string_view sent) { return sent == "+OK\r\n" || sent == "$2\r\nOK\r\n"; }

/// Whether this answer says that the client has the lock; nothing for a command that decides
/// nothing.
std::optional<bool> grants(const HostileServer::Exchange& exchange) {
  const std::vector<std::string> words = read_command(exchange.request)->words;
  const std::string_view name = name_of(words), sent = exchange.sent;
  if (name == "SETNX") return sent == ":1\r\n";
  if (name == "GETSET") return is_nil(sent) || sent == "$1\r\n1\r\n";
  if (name == "SET") return is_ok(sent);
  if (name == "EXPIRE") return sent == ":1\r\n" || sent == "+QUEUED\r\n";
  if (name == "EXEC") return sent == "*2\r\n:1\r\n:1\r\n";
  if (name == "WAIT" || name == "fenced_acquire") return is_number(sent, 1);
  if (name == "reentrant_acquire") return is_nil(sent);
  if (name == "read_write" && words.size() > 6 && words[6] == "write") return is_nil(sent);
  if (name == "queue" && words.at(7) == "ask") {
    return sent.starts_with("*2\r\n:1\r\n") && is_number(sent.substr(8), 1);
  }
  return std::nullopt;
}

bool was_granted(const std::vector<HostileServer::Exchange>& exchanges) {
  for (auto exchange = exchanges.rbegin(); exchange != exchanges.rend(); ++exchange) {
    if (const auto granted = grants(*exchange)) return *granted;
  }
  return false;
}

class HostileRedis : public testing::TestWithParam<const Descriptor*> {};

TEST_P(HostileRedis, GetsNoLockGrantedThatItDidNotGrant) {
  for (const bool stale : {false, true}) {
    if (stale && !GetParam()->name.starts_with("redis-getset")) continue;
    expect_no_false_grants(
        *GetParam(), misdeeds(redis_replies(), {"+OK\r\n", ":1\r\n", "x", "*1\r\n"}), [stale] {
          return Honest{[stale] { return std::make_unique<RedisSpeaker>(stale); }, was_granted,
                        "redis://"};
        });
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostileRedis, testing::ValuesIn(strategies_of("redis")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

}  // namespace
}  // namespace lockbench::test
