#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/integration/support/program.h"

// `lockbench hazards` as a program, with the tests' own strategies among its own.

namespace lockbench::hazards::test {
namespace {

using testing::HasSubstr;
using testing::Not;

using lockbench::test::Outcome, lockbench::test::Program, lockbench::test::Scratch;

class Command : public testing::Test {
 protected:
  /// Its exit code; of three tries at most, the first in which nothing disturbed its plays.
  int run(const std::string& arguments) {
    std::istringstream text("hazards --out result.json " + arguments);
    const std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
    for (int tries = 0; tries < 3; ++tries) {
      ended_ = Program(scratch_, words, {.program = "lockbench_with_mutants"}).finish();
      if (ended_.code == 1 || !was_disturbed()) break;
    }
    return ended_.code;
  }
  bool was_disturbed() const {
    return result().at("hazards").dump().find("disturbed: ") != std::string::npos;
  }
  const std::string& out() const { return ended_.out; }
  const std::string& err() const { return ended_.err; }
  nlohmann::json result() const {
    return nlohmann::json::parse(lockbench::test::read_file(scratch_ / "result.json"));
  }

  const Scratch scratch_;
  Outcome ended_;
};

TEST_F(Command, ShowsAndSavesWhatWasSeen) {
  EXPECT_EQ(run("late-release contention --strategies redis-set-nx,redis-set-nx-lua,none"), 0)
      << err();
  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
  const auto saved = result();
  ASSERT_EQ(saved.at("hazards").size(), 6U);
  const auto& cell = saved.at("hazards").at(0);
  EXPECT_EQ(cell.at("strategy"), "redis-set-nx");
  EXPECT_EQ(cell.at("observed"), "foreign-release");
  EXPECT_EQ(cell.at("agrees"), true);
  EXPECT_GT(cell.at("timeline").size(), 5U);
}

TEST_F(Command, EndsWithThreeWhereADeclarationIsWrong) {
  EXPECT_EQ(run("late-release --strategies test-unchecked-release"), 3);
  EXPECT_THAT(err(), HasSubstr("safe is declared"));
  EXPECT_EQ(result().at("hazards").at(0).at("agrees"), false);
}

TEST_F(Command, ExplainsOnePlay) {
  EXPECT_EQ(run("--explain pause-holding/redis-set-nx-lua"), 0) << err();
  EXPECT_THAT(out(), HasSubstr("holder is stopped"));
  const auto cell = result().at("hazards").at(0);
  EXPECT_EQ(cell.at("observed"), "lost-update");
  EXPECT_EQ(cell.at("evidence").at("lost_updates"), 1);
}

TEST_F(Command, ReportsACellThatDoesNotAlwaysEndAlike) {
  EXPECT_EQ(run("late-release --strategies test-flickers --repeat 4"), 3);
  EXPECT_THAT(err(), HasSubstr("unstable: late-release / test-flickers"));
  const auto saved = result();
  ASSERT_EQ(saved.at("hazards").size(), 1U);
  EXPECT_EQ(saved.at("hazards").at(0).at("evidence").at("unstable"), true);
  EXPECT_EQ(saved.at("hazards").at(0).at("observed"), "foreign-release");
}

TEST_F(Command, MeasuresTheBeliefGap) {
  EXPECT_EQ(run("partition-holder --strategies redis-set-nx-lua --repeat 2"), 0) << err();
  // Its own clock ends its belief no later than the store ends the lock.
  EXPECT_LE(result().at("hazards").at(0).at("evidence").at("belief_gap_seconds"), 0.0);
}

TEST_F(Command, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(run("late-release --explain late-release/redis-set-nx"), 1);
  EXPECT_THAT(err(), HasSubstr("--explain names its scenario and strategy"));
}

TEST_F(Command, NamesWhatItDoesNotKnow) {
  EXPECT_EQ(run("late-relase --strategies redis-set-nx"), 1);
  EXPECT_THAT(err(), HasSubstr("no such scenario \"late-relase\""));
  EXPECT_THAT(err(), HasSubstr("late-release"));
  EXPECT_EQ(run("late-release --strategies redis-set-ny"), 1);
  EXPECT_THAT(err(), HasSubstr("no such strategy"));
  EXPECT_EQ(run("--explain late-release"), 1);
  EXPECT_THAT(err(), HasSubstr("SCENARIO/STRATEGY"));
}

}  // namespace
}  // namespace lockbench::hazards::test
