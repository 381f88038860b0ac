#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <sstream>

#include "tests/folders.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

// scripts/tpcc.py, and a run with the trace that it makes.

namespace lockbench::test {
namespace {

constexpr int kTransactions = 20'000;

Outcome tpcc(const Scratch& scratch, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--transactions", std::to_string(kTransactions)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return lockbench(scratch, arguments, {.program = LOCKBENCH_SOURCE_DIR "/scripts/tpcc.py"});
}

/// How many transactions of each type, 1 to 5, a trace has.
std::array<int, 6> types_in(const std::string& trace) {
  std::array<int, 6> counts{};
  std::istringstream lines(trace);
  char comma = 0;
  long latest = 0, transaction = 0, task = 0, type = 0, lock = 0, mode = 0;
  while (lines >> transaction >> comma >> task >> comma >> type >> comma >> lock >> comma >> mode) {
    if (transaction != latest) ++counts.at(static_cast<std::size_t>(type));
    latest = transaction;
  }
  return counts;
}

TEST(Tpcc, TransactionsHaveTheStandardsShares) {
  const Scratch scratch;
  const Outcome made = tpcc(scratch, {"--warehouses", "2", "--out", "tpcc.csv"});
  ASSERT_EQ(made.code, 0) << made.err;
  const std::array<int, 6> counts = types_in(read_file(scratch / "tpcc.csv"));
  constexpr std::array<double, 6> kShares{0, 0.45, 0.43, 0.04, 0.04, 0.04};
  for (std::size_t type = 1; type < counts.size(); ++type) {
    const double expected = kTransactions * kShares[type];
    EXPECT_NEAR(counts[type], expected, 6 * std::sqrt(expected * (1 - kShares[type]))) << type;
  }
}

TEST(Tpcc, OneSeedGivesTheSame) {
  const Scratch scratch;
  const Outcome first = tpcc(scratch, {"--out", "-"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(first.out.starts_with("1,0,")) << first.out.substr(0, 80);
  EXPECT_EQ(tpcc(scratch, {"--out", "-", "--seed", "1"}).out, first.out);
  EXPECT_NE(tpcc(scratch, {"--out", "-", "--seed", "2"}).out, first.out);
}

TEST(Tpcc, ARunTakesTheLocksOfTheTrace) {
  const Scratch scratch;
  ASSERT_EQ(tpcc(scratch, {"--transactions", "300", "--out", "tpcc.csv"}).code, 0);
  const Outcome outcome = lockbench(scratch, {"run", "local-mutex", "--trace", "tpcc.csv",
                                              "--warmup", "0s", "--hold", "0s", "--out", "r.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(run_of(result, "local-mutex").at("sections"), 300);
}

}  // namespace
}  // namespace lockbench::test
