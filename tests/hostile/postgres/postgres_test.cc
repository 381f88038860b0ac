// Servers that give wrong answers, at each point of every lock on PostgreSQL.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/hostile_life.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

namespace pg {

// Messages of PostgreSQL's protocol, version 3.

std::string int16(std::size_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value)};
}
std::string int32(std::size_t value) { return int16(value >> 16) + int16(value & 0xffff); }
std::size_t read_int32(std::string_view bytes) {
  std::size_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}
std::string zero_ended(std::string_view text) { return std::string(text) + '\0'; }

std::string message(char type, std::string_view body = {}) {
  return type + int32(body.size() + 4) + std::string(body);
}
std::string columns(std::size_t count) {
  std::string body = int16(count);
  constexpr std::size_t kText = 25;
  for (std::size_t i = 0; i < count; ++i) {
    body += zero_ended("c") + int32(0) + int16(0) + int32(kText) + int16(0xffff) +
            int32(0xffffffff) + int16(0);
  }
  return message('T', body);
}
/// Nothing: NULL.
std::string row(const std::vector<std::optional<std::string>>& values) {
  std::string body = int16(values.size());
  for (const auto& value : values) {
    body += value ? int32(value->size()) + *value : int32(0xffffffff);
  }
  return message('D', body);
}
std::string done(std::string_view tag) { return message('C', zero_ended(tag)); }
std::string error(std::string_view code, std::string_view text = "no") {
  return message(
      'E', "S" + zero_ended("ERROR") + "C" + zero_ended(code) + "M" + zero_ended(text) + '\0');
}
const std::string ready = message('Z', "I");
const std::string bound = message('2');
std::string one_value(const std::optional<std::string>& value, std::string_view tag = "SELECT 1") {
  return columns(1) + row({value}) + done(tag);
}

struct Message {
  char type = 0;  ///< 0: the first message of a connection, which has no type
  std::string_view body;
};

/// The messages up to the one that requests an answer; empty if that is incomplete.
std::vector<Message> read_request(std::string_view bytes) {
  std::vector<Message> request;
  while (!bytes.empty()) {
    const bool typed = bytes.front() != 0;
    const std::size_t head = typed ? 5 : 4;
    if (bytes.size() < head) return {};
    const std::size_t length = read_int32(bytes.substr(head - 4)) + head - 4;
    if (bytes.size() < length) return {};
    request.push_back({typed ? bytes.front() : '\0', bytes.substr(head, length - head)});
    if (!typed || std::string_view("SQXp").find(bytes.front()) != std::string_view::npos) {
      return request;
    }
    bytes.remove_prefix(length);
  }
  return {};
}

/// Keeps the statements of a connection by name.
class Statements {
 public:
  /// The SQL that a request executes; empty if none.
  std::string executed_by(const std::vector<Message>& request) {
    std::string sql;
    for (const Message& one : request) {
      const std::string_view first = one.body.substr(0, one.body.find('\0'));
      const std::string_view rest = one.body.substr(std::min(one.body.size(), first.size() + 1));
      const std::string second(rest.substr(0, rest.find('\0')));
      if (one.type == 'Q') sql = first;
      if (one.type == 'P') by_name_[std::string(first)] = second;
      if (one.type == 'B') sql = by_name_[second];
    }
    return sql;
  }

 private:
  std::map<std::string, std::string> by_name_;
};

/// Grants every lock.
class PostgresSpeaker : public Speaker {
 public:
  std::size_t request_length(std::string_view received) override {
    const std::vector<Message> request = read_request(received);
    if (request.empty()) return 0;
    const std::string_view last = request.back().body;
    return static_cast<std::size_t>(last.data() + last.size() - received.data());
  }

  bool is_prelude(std::string_view request) const override {
    return std::string_view("\0Xp", 3).find(request.front()) != std::string_view::npos;
  }

  std::string answer(std::string_view request) override {
    const std::vector<Message> messages = read_request(request);
    if (messages.front().type == 0) return greeting(messages.front().body);
    const std::string sql = statements_.executed_by(messages);
    std::string answer;
    for (const Message& one : messages) {
      if (one.type == 'P') answer += message('1');
      if (one.type == 'B') answer += bound;
      if (one.type == 'E' || one.type == 'Q') answer += result_of(sql);
      if (one.type == 'S' || one.type == 'Q') answer += ready;
    }
    return answer;
  }

 private:
  static std::string greeting(std::string_view body) {
    constexpr std::size_t kVersion3 = 3 << 16;
    if (read_int32(body) != kVersion3) return "N";  // neither TLS nor GSS
    return message('R', int32(0)) + message('K', int32(42) + int32(1)) + ready;
  }

  static std::string result_of(const std::string& sql) {
    const auto has = [&](std::string_view part) { return sql.find(part) != std::string::npos; };
    if (has("pg_backend_pid")) return one_value("42");
    if (has("unlock") || has("pg_cancel")) return one_value("t");
    if (sql.starts_with("SELECT") && has("observed_lease")) return columns(1) + done("SELECT 0");
    if (sql.starts_with("SELECT") || sql.starts_with("SET LOCAL") || sql.starts_with("WITH")) {
      return one_value(has("nextval") ? "7" : "1");
    }
    if (sql.starts_with("INSERT")) return message('n') + done("INSERT 0 1");
    if (sql.starts_with("UPDATE")) return message('n') + done("UPDATE 1");
    if (sql.starts_with("DELETE")) return message('n') + done("DELETE 1");
    return message('n') + done(sql);  // BEGIN, COMMIT and ROLLBACK
  }

  Statements statements_;
};

// NOLINTBEGIN(performance-inefficient-string-concatenation): it reads as the messages follow each
// other
/// Answers of every kind, valid and invalid.
std::vector<std::string> replies() {
  std::vector<std::string> all;
  for (const std::optional<std::string>& value : std::vector<std::optional<std::string>>{
           "t", "f", "0", "1", "-1", "99999999999999999999999", "", "seven", "7\x1b[2J",
           std::string("7\0", 2), std::nullopt}) {
    all.push_back(bound + one_value(value) + ready);
  }
  for (const char* tag :
       {"SELECT 1", "SELECT 0", "SELECT 99999999999999999999999", "SELECT -1", "INSERT 0 0",
        "INSERT 0 1", "INSERT 0 2", "UPDATE 0", "UPDATE 1", "UPDATE 18446744073709551616", "BEGIN",
        "COMMIT", "ROLLBACK", "SET", "", "\x1b[2J"}) {
    all.push_back(bound + message('n') + done(tag) + ready);
    all.push_back(bound + one_value("7", tag) + ready);
  }
  for (const char* code : {"55P03", "57014", "57P01", "40001", "25P02", "25P03", "XX\x1b[2J", ""}) {
    all.push_back(error(code, "no\x1b[2J\nmore") + ready);
  }
  std::string many;
  for (int i = 0; i < 200; ++i) many += one_value("7");
  const std::string copy = std::string(1, '\0') + int16(0);
  for (const std::string& answer : {
           ready,
           message('1') + ready,
           bound + ready,
           bound + columns(0) + row({}) + done("SELECT 1") + ready,
           bound + columns(2) + row({"7", "7"}) + done("SELECT 1") + ready,
           bound + columns(1) + row({"7"}) + row({"8"}) + done("SELECT 2") + ready,
           bound + columns(1) + row({"7", "7"}) + done("SELECT 1") + ready,
           bound + columns(1) + done("SELECT 1") + ready,
           bound + row({"7"}) + done("SELECT 1") + ready,
           bound + message('I') + ready,
           bound + message('s') + ready,
           bound + message('G', copy) + ready,
           bound + message('H', copy) + ready,
           bound + message('W', copy) + ready,
           bound + many + ready,
           bound + one_value("7") + ready + one_value("8") + ready,
           message('N', "M" + zero_ended("hear") + '\0') + ready,
           message('A', int32(1) + zero_ended("c") + zero_ended("p")) + ready,
           message('S', zero_ended("client_encoding") + zero_ended("none")) + ready,
           // Longer than any valid answer. libpq allocates the whole length, which costs
           // ThreadSanitizer time for every byte.
           'D' + int32(1 << 26) + "x",
           'D' + int32(0xffffffff) + "x",
           'C' + int32(0),
           message('R', int32(3)),
           message('?'),
           std::string("HTTP/1.1 400 Bad Request\r\n\r\n"),
       }) {
    all.push_back(answer);
  }
  return all;
}
// NOLINTEND(performance-inefficient-string-concatenation)

}  // namespace pg

/// The values of all rows, and the tag of the one result; nothing if there is not exactly one.
struct Result {
  std::vector<std::string> values;
  std::string tag;
};
std::optional<Result> read_result(std::string_view sent) {
  Result result;
  int results = 0;
  // Data after the server is ready does not belong to the answer.
  bool ready = false;
  while (sent.size() >= 5 && !ready) {
    const std::size_t length = pg::read_int32(sent.substr(1)) + 1;
    if (sent.size() < length) return std::nullopt;
    const std::string_view body = sent.substr(5, length - 5);
    if (sent.front() == 'D' && body.size() > 6) result.values.emplace_back(body.substr(6));
    if (sent.front() == 'E') return std::nullopt;
    if (sent.front() == 'C') {
      ++results;
      result.tag = body.substr(0, body.find('\0'));
    }
    ready = sent.front() == 'Z';
    sent.remove_prefix(length);
  }
  return results == 1 && ready ? std::optional(result) : std::nullopt;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 20 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether the last statement that decides was answered with the lock.
bool was_granted(const std::vector<HostileServer::Exchange>& exchanges) {
  pg::Statements statements;
  bool granted = false;
  for (const auto& [request, sent] : exchanges) {
    const std::string sql = statements.executed_by(pg::read_request(request));
    const auto result = read_result(sent);
    if (sql.find("nextval") != std::string::npos) {
      granted = result && result->tag == "SELECT 1" && result->values.size() == 1 &&
                is_number(result->values.front());
    } else if (sql.starts_with("INSERT INTO lockbench_")) {
      granted = result && result->tag == "INSERT 0 1";
    }
  }
  return granted;
}

class HostilePostgres : public testing::TestWithParam<const Descriptor*> {};

TEST_P(HostilePostgres, GetsNoLockGrantedThatItDidNotGrant) {
  const std::vector<std::string> floods{pg::one_value("7"), pg::row({std::string(1000, 'x')}),
                                        pg::message('N', "M" + pg::zero_ended("hear") + '\0')};
  expect_no_false_grants(*GetParam(), misdeeds(pg::replies(), floods), [] {
    return Honest{[] { return std::make_unique<pg::PostgresSpeaker>(); }, was_granted,
                  "postgresql://ann@", "/app?sslmode=disable&gssencmode=disable"};
  });
}

INSTANTIATE_TEST_SUITE_P(All, HostilePostgres, testing::ValuesIn(strategies_of("postgres")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

}  // namespace
}  // namespace lockbench::test
