// Servers that give wrong answers, at each point of every lock on Redis.

#include <gtest/gtest.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/redis/scripts.h"
#include "tests/support/hostile_life.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// The words of a command on the wire, and its length; empty until it is complete.
struct RedisCommand {
  std::vector<std::string> words;
  std::size_t length = 0;
};

std::optional<RedisCommand> read_command(std::string_view bytes) {
  RedisCommand command;
  const auto number_after = [&](char sign) -> std::optional<std::size_t> {
    const std::size_t end = bytes.find("\r\n", command.length);
    if (end == std::string_view::npos || bytes[command.length] != sign) return std::nullopt;
    std::size_t number = 0;
    std::from_chars(bytes.data() + command.length + 1, bytes.data() + end, number);
    command.length = end + 2;
    return number;
  };
  const auto words = number_after('*');
  for (std::size_t i = 0; words && i < *words; ++i) {
    const auto size = number_after('$');
    if (!size || command.length + *size + 2 > bytes.size()) return std::nullopt;
    command.words.emplace_back(bytes.substr(command.length, *size));
    command.length += *size + 2;
  }
  return words ? std::optional(command) : std::nullopt;
}

/// The name of the command, or of its script.
std::string_view name_of(const std::vector<std::string>& words) {
  namespace scripts = redis::scripts;
  if (!words[0].starts_with("EVAL")) return words[0];
  for (const redis::Script& script :
       {scripts::release_if_token, scripts::renew_if_token, scripts::reentrant_acquire,
        scripts::reentrant_release, scripts::reentrant_renew, scripts::fenced_acquire,
        scripts::queue, scripts::read_write, scripts::reentrant_release_sharded}) {
    if (words.at(1) == script.sha1 || words.at(1) == script.source) return script.name;
  }
  return "unknown script";
}

/// Grants every lock. `stale`: locks that store their expiry are held but expired.
class RedisSpeaker : public Speaker {
 public:
  explicit RedisSpeaker(bool stale) : stale_(stale) {}

  std::size_t request_length(std::string_view received) override {
    const auto command = read_command(received);
    return command ? command->length : 0;
  }

  bool is_prelude(std::string_view request) const override {
    const std::string name = read_command(request)->words[0];
    return name == "AUTH" || name == "SELECT" || name == "PING";
  }

  std::string answer(std::string_view request) override {
    const std::vector<std::string> words = read_command(request)->words;
    const std::string_view name = name_of(words);
    if (name == "MULTI") in_transaction_ = true;
    if (name == "EXEC") {
      in_transaction_ = false;
      return "*2\r\n:1\r\n:1\r\n";
    }
    if (in_transaction_) return name == "MULTI" ? "+OK\r\n" : "+QUEUED\r\n";
    if (name == "SET" || name == "SETNX") value_ = words.at(2);
    if (name == "SET") return stale_ ? "$-1\r\n" : "+OK\r\n";
    if (name == "SETNX") return stale_ ? ":0\r\n" : ":1\r\n";
    if (name == "GETSET") return stale_ ? "$1\r\n1\r\n" : "$-1\r\n";
    if (name == "GET") return stale_ ? "$1\r\n1\r\n" : text(value_);
    if (name == "BLPOP") return "*-1\r\n";
    if (name == "INFO") return text("# Server\r\nrun_id:1\r\nused_cpu_user:1\r\n");
    if (name == "SUBSCRIBE" || name == "UNSUBSCRIBE") {
      return "*3\r\n" + text(name == "SUBSCRIBE" ? "subscribe" : "unsubscribe") + text(words[1]) +
             ":1\r\n";
    }
    if (name == "fenced_acquire") return ":7\r\n";
    if (name == "reentrant_acquire") return "$-1\r\n";
    if (name == "queue" && words.at(7) == "ask") return "*2\r\n:1\r\n:7\r\n";
    const bool takes = words.size() > 6 && (words[6] == "write" || words[6] == "read");
    if (name == "read_write" && takes) return "$-1\r\n";
    const bool known = name == "AUTH" || name == "SELECT";
    return name == "PING" ? "+PONG\r\n" : known ? "+OK\r\n" : ":1\r\n";
  }

 private:
  static std::string text(std::string_view value) {
    return "$" + std::to_string(value.size()) + "\r\n" + std::string(value) + "\r\n";
  }

  const bool stale_;
  std::string value_;
  bool in_transaction_ = false;
};

/// Answers of every type, valid and invalid.
const std::vector<std::string>& redis_replies() {
  static const std::vector<std::string> all{
      "+OK\r\n",
      "+QUEUED\r\n",
      "+PONG\r\n",
      "+\x1b[31mred\r\n",
      "-ERR no\x1b[2J\r\n",
      "-NOSCRIPT none\r\n",
      "-READONLY replica\r\n",
      ":0\r\n",
      ":1\r\n",
      ":2\r\n",
      ":-1\r\n",
      ":9223372036854775807\r\n",
      ":9223372036854775808\r\n",
      ":\r\n",
      "$-1\r\n",
      "$0\r\n\r\n",
      "$1\r\n1\r\n",
      "$2\r\nOK\r\n",
      "$2\r\nOKAY\r\n",
      "$-2\r\n",
      "$1073741824\r\n",
      "*-1\r\n",
      "*0\r\n",
      "*1\r\n:1\r\n",
      "*2\r\n:1\r\n:1\r\n",
      "*2\r\n:1\r\n$-1\r\n",
      "*2\r\n:1\r\n:-5\r\n",
      "*2\r\n:0\r\n:9223372036854775807\r\n",
      "*2\r\n+OK\r\n+OK\r\n",
      "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\ny\r\n",
      "*2147483647\r\n",
      "*-2\r\n",
      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
      "\r\n",
      "_\r\n",
      "HTTP/1.1 400 Bad Request\r\n\r\n",
      std::string("\0\0\0\0\r\n", 6),
      "+OK\r\n+OK\r\n",
      ":1\r\n:1\r\n",
  };
  return all;
}

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

/// Whether this answer grants the lock; nothing if its command does not decide that.
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
