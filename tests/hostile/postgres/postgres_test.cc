// Servers that answer with anything but what a statement calls for, at each point of every lock on
// PostgreSQL.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/hostile/postgres/postgres_speaker.h"
#include "tests/support/hostile_life.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// The values of all rows, and the tag of the one result; nothing if there is not exactly one.
struct Result {
  std::vector<std::string> values;
  std::string tag;
};
std::optional<Result> read_result(std::string_view sent) {
  Result result;
  int results = 0;
  // What follows after the server is ready is not the answer.
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
    } else if (sql.starts_with("INSERT INTO lease")) {
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
