// Servers that give wrong answers, at each point of every lock on MariaDB.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/env.h"
#include "strategies/registry.h"
#include "tests/support/eventually.h"
#include "tests/support/fiber_lock.h"
#include "tests/support/hostile_life.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

namespace my {

// Packets of the protocol of MySQL 4.1 and MariaDB.
// NOLINTBEGIN(performance-inefficient-string-concatenation): it reads as the parts follow each
// other

constexpr std::size_t kHead = 4;
constexpr std::size_t kMoreResults = 8;  // in a status

std::string little(std::size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::size_t read_little(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

/// Numbered from this one on, as an answer's packets are from 1.
std::string packets(const std::vector<std::string>& bodies, std::size_t number = 1) {
  std::string all;
  for (const std::string& body : bodies) all += little(body.size(), 3) + little(number++, 1) + body;
  return all;
}

using Bodies = std::vector<std::string>;

/// Its number of rows, below 251, in one byte.
std::string ok(std::size_t changed = 0, std::size_t status = 2) {
  return '\0' + little(changed, 1) + '\0' + little(status, 2) + little(0, 2);
}
std::string end_of_list(std::size_t status = 2) {
  return '\xfe' + little(0, 2) + little(status, 2);
}
std::string error(std::size_t code, const std::string& text = "no") {
  return '\xff' + little(code, 2) + "#HY000" + text;
}
std::string text_of(const std::string& value) { return little(value.size(), 1) + value; }

/// Nothing: NULL.
using Value = std::optional<std::string>;
Bodies table(std::size_t columns, const std::vector<std::vector<Value>>& rows,
             std::size_t status = 2) {
  constexpr std::size_t kUtf8 = 33;
  Bodies all{little(columns, 1)};
  for (std::size_t i = 0; i < columns; ++i) {
    all.push_back(text_of("def") + text_of("") + text_of("") + text_of("") + text_of("c") +
                  text_of("") + '\x0c' + little(kUtf8, 2) + little(255, 4) + '\xfd' + little(0, 5));
  }
  all.push_back(end_of_list());
  for (const auto& row : rows) {
    std::string body;
    for (const Value& value : row) body += value ? text_of(*value) : std::string("\xfb");
    all.push_back(body);
  }
  all.push_back(end_of_list(status));
  return all;
}
Bodies one_value(const Value& value, std::size_t status = 2) { return table(1, {{value}}, status); }

Bodies joined(Bodies first, const Bodies& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// NOLINTEND(performance-inefficient-string-concatenation)

std::string_view sql_of(std::string_view request) { return request.substr(kHead + 1); }

/// Grants every lock.
class MysqlSpeaker : public Speaker {
 public:
  std::string opening() override {
    // Protocol 4.1, passwords of mysql_native_password, several statements and results.
    constexpr std::size_t kAbilities = 0x000fa209;
    const std::string challenge = "12345678" + std::string("901234567890");
    return packets(
        {'\x0a' + std::string("5.5.5-10.11.0-MariaDB") + '\0' + little(42, 4) +
         challenge.substr(0, 8) + '\0' + little(kAbilities & 0xffff, 2) + little(33, 1) +
         little(2, 2) + little(kAbilities >> 16, 2) + little(challenge.size() + 1, 1) +
         std::string(10, '\0') + challenge.substr(8) + '\0' + "mysql_native_password" + '\0'},
        0);
  }

  std::size_t request_length(std::string_view received) override {
    if (received.size() < kHead) return 0;
    const std::size_t length = read_little(received.substr(0, 3)) + kHead;
    return received.size() < length ? 0 : length;
  }

  /// The login, and the goodbye.
  bool is_prelude(std::string_view request) const override {
    return request[3] != 0 || (request.size() > kHead && request[kHead] == 1);
  }

  std::string answer(std::string_view request) override {
    if (request[3] != 0) return packets({ok()}, 2);
    if (is_prelude(request) || request.size() == kHead) return {};
    const std::string_view sql = sql_of(request);
    const auto has = [&](std::string_view part) {
      return sql.find(part) != std::string_view::npos;
    };
    if (has("sql_mode")) return packets({ok()});
    if (has("SET SESSION")) {
      const std::string more = ok(0, kMoreResults);
      return packets(joined({more, more, more}, one_value("7")));
    }
    if (has("RELEASE_LOCK")) return packets(one_value("t"));
    if (has("NEXTVAL")) return packets(one_value("7"));
    if (has("FOR UPDATE")) return packets(one_value("1"));
    if (has("SELECT")) return packets(table(1, {}));
    return packets({ok(has("INSERT") || has("UPDATE") ? 1 : 0)});
  }
};

/// Answers of every kind, valid and invalid.
std::vector<std::string> replies() {
  std::vector<std::string> all;
  for (const Value& value :
       std::vector<Value>{"t", "f", "0", "1", "-1", "99999999999999999999999", "", "seven",
                          "7\x1b[2J", std::string("7\0", 2), std::nullopt}) {
    all.push_back(packets(one_value(value)));
  }
  for (const std::size_t changed : {0, 1, 2, 3, 250}) all.push_back(packets({ok(changed)}));
  for (const std::size_t code : {1205, 1213, 1317, 1927, 1053, 1969, 1045, 2013, 0}) {
    all.push_back(packets({error(code, "no\x1b[2J\nmore")}));
  }
  const std::vector<Value> seven{"7"};
  Bodies many;
  for (int i = 0; i < 30; ++i) many = joined(many, one_value("7", kMoreResults));
  for (const Bodies& bodies : std::vector<Bodies>{
           table(1, {}),
           table(1, {seven, seven}),
           table(2, {{"7", "7"}}),
           table(1, {{"7", "7"}}),
           joined(one_value("7", kMoreResults), one_value("8")),
           joined({ok(1, kMoreResults)}, {ok(1)}),
           {ok(1, kMoreResults)},
           {end_of_list()},
           {little(1, 1)},
           {little(1, 1), end_of_list()},
           {"\xfb/etc/passwd"},
           {""},
           many,
       }) {
    all.emplace_back(packets(bodies));
  }
  // Out of sequence, longer than any valid answer, and another protocol's.
  all.push_back(packets(one_value("7"), 5));
  all.emplace_back("\xff\xff\xff\x01x");
  all.emplace_back("HTTP/1.1 400 Bad Request\r\n\r\n");
  return all;
}

/// The bodies of the whole packets that it begins with.
Bodies read_packets(std::string_view sent) {
  Bodies bodies;
  while (sent.size() >= kHead) {
    const std::size_t length = read_little(sent.substr(0, 3));
    if (sent.size() < kHead + length) break;
    bodies.emplace_back(sent.substr(kHead, length));
    sent.remove_prefix(kHead + length);
  }
  return bodies;
}

/// The value of an answer that begins as one with a single value does; nothing for any other. The
/// library passes over what is too much in a row or behind it, and over the packets' numbers.
std::optional<std::string> value_in(std::string_view sent) {
  const Bodies bodies = read_packets(sent);
  if (bodies.size() < 5 || bodies[0] != little(1, 1) || bodies[3].empty()) return std::nullopt;
  const auto length = static_cast<unsigned char>(bodies[3].front());
  const bool ends = bodies[4].starts_with('\xfe');
  if (length > 250 || bodies[3].size() < 1U + length || !ends) return std::nullopt;
  return bodies[3].substr(1, length);
}

}  // namespace my

bool is_digits(std::string_view text) {
  return !text.empty() && text.size() < 20 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether the last statement that decides was answered with the lock.
bool was_granted_by_mysql(const std::vector<HostileServer::Exchange>& exchanges) {
  bool granted = false;
  for (const auto& [request, sent] : exchanges) {
    if (request.size() <= my::kHead) continue;
    const std::string sql(my::sql_of(request));
    const auto has = [&](std::string_view part) { return sql.find(part) != std::string::npos; };
    if (has("SET SESSION")) continue;
    if (has("NEXTVAL")) {
      const auto value = my::value_in(sent);
      granted = value && is_digits(*value) && !(has("GET_LOCK") && *value == "0");
    } else if (has("INSERT INTO lease")) {
      granted = sent == my::packets({my::ok(1)}) || sent == my::packets({my::ok(2)});
    }
  }
  return granted;
}

class HostileMysql : public testing::TestWithParam<const Descriptor*> {};

TEST_P(HostileMysql, GetsNoLockGrantedThatItDidNotGrant) {
  // No flood of answers with a number: the next one answers the request that is yet to come.
  const std::vector<std::string> floods{my::packets({my::ok(0, my::kMoreResults)}),
                                        std::string(1000, 'x')};
  expect_no_false_grants(*GetParam(), misdeeds(my::replies(), floods), [] {
    return Honest{[] { return std::make_unique<my::MysqlSpeaker>(); }, was_granted_by_mysql,
                  "mysql://ann@"};
  });
}

/// For which the client trusts its lease.
TEST(MysqlLease, AsksForWholeMilliseconds) {
  const HostileServer server([] { return std::make_unique<my::MysqlSpeaker>(); }, {});
  const auto env = make_system_env(random_seed());
  Services services;
  const Endpoints endpoints{{"mysql", {"mysql://ann@" + server.address()}}};
  const StrategyOptions options{.command_timeout = kPatience};
  const auto lock = make_carried(
      *find_strategy("mysql-lease"),
      {.endpoints = endpoints, .options = options, .env = *env, .services = services, .client = 3});
  constexpr Duration kTtl = std::chrono::seconds(10) + std::chrono::nanoseconds(1);
  EXPECT_TRUE(lock->acquire({.key = "lockbench:hostile:{k}", .ttl = kTtl, .deadline = {}}).lease);
  EXPECT_TRUE(std::ranges::any_of(server.exchanges(), [](const auto& exchange) {
    return exchange.request.find(" + INTERVAL 10001000 MICROSECOND") != std::string::npos;
  }));
}

INSTANTIATE_TEST_SUITE_P(All, HostileMysql, testing::ValuesIn(strategies_of("mysql")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

}  // namespace
}  // namespace lockbench::test
