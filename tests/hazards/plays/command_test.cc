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
  /// Its exit code.
  int run(const std::string& arguments) {
    std::istringstream text("hazards --out result.json " + arguments);
    const std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
    ended_ = Program(scratch_, words, {.program = "lockbench_with_mutants"}).finish();
    return ended_.code;
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
  EXPECT_THAT(out(), HasSubstr("late-release  freed     safe      "));
  EXPECT_THAT(out(), HasSubstr("contention    safe      safe      lost"));
  EXPECT_THAT(out(),
              HasSubstr("late-release / redis-set-nx: foreign-release\n  the release freed"));
  EXPECT_THAT(out(), Not(HasSubstr("late-release / redis-set-nx-lua")));
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
  EXPECT_THAT(out(), HasSubstr("freed!"));
  EXPECT_THAT(out(), HasSubstr("foreign-release (declared: safe)"));
  EXPECT_THAT(err(), HasSubstr("safe is declared"));
  EXPECT_EQ(result().at("hazards").at(0).at("agrees"), false);
}

TEST_F(Command, ExplainsOnePlay) {
  EXPECT_EQ(run("--explain pause-holding/redis-set-nx-lua"), 0) << err();
  EXPECT_THAT(out(), HasSubstr("pause-holding / redis-set-nx-lua: lost-update"));
  EXPECT_THAT(out(), HasSubstr("holder is stopped"));
  EXPECT_THAT(out(), HasSubstr("second  is granted the lock"));
  EXPECT_THAT(out(), HasSubstr("lost_updates: 1"));
}

TEST_F(Command, ReportsACellThatDoesNotAlwaysEndAlike) {
  EXPECT_EQ(run("late-release --strategies test-flickers --repeat 4"), 3);
  EXPECT_THAT(err(), HasSubstr("unstable: late-release / test-flickers: "
                               "safe 2 times, foreign-release 2 times"));
  EXPECT_THAT(out(), HasSubstr("freed~"));
  const auto saved = result();
  ASSERT_EQ(saved.at("hazards").size(), 1U);
  EXPECT_EQ(saved.at("hazards").at(0).at("evidence").at("unstable"), true);
}

TEST_F(Command, ShowsBeliefGapsOfRepeatedPlays) {
  EXPECT_EQ(run("partition-holder --strategies redis-set-nx-lua --repeat 2"), 0) << err();
  EXPECT_THAT(out(), HasSubstr("partition-holder / redis-set-nx-lua      2"));
  const auto gap = result().at("belief_gaps").at(0);
  EXPECT_EQ(gap.at("seconds").size(), 2U);
  // Its own clock ends its belief no later than the store ends the lock.
  EXPECT_LE(gap.at("max"), 0.0);
}

TEST_F(Command, GivesAFaultInDoses) {
  EXPECT_EQ(run("overrun-holding --dose --dose-plays 2 --dose-ratio 0.5 --dose-ratio 2 "
                "--strategies redis-set-nx-lua,none"),
            0)
      << err();
  EXPECT_THAT(out(), HasSubstr("% violated, by length in TTLs       0.5    2"));
  EXPECT_THAT(out(), HasSubstr("overrun-holding / redis-set-nx-lua    0  100"));
  const auto saved = result();
  EXPECT_EQ(saved.at("experiment").at("name"), "dose");
  EXPECT_EQ(saved.at("experiment").at("points").size(), 2U);
  EXPECT_EQ(saved.at("workload").at("dose_plays"), 2);
}

TEST_F(Command, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(run("--dose --quick"), 1);
  EXPECT_THAT(err(), HasSubstr("--quick"));
  EXPECT_EQ(run("--dose-plays 3"), 1);
  EXPECT_THAT(err(), HasSubstr("--dose-plays requires --dose"));
  EXPECT_EQ(run("--dose late-release"), 1);
  EXPECT_THAT(err(),
              HasSubstr("late-release has no adjustable duration; these do: overrun-holding"));
  EXPECT_EQ(run("--dose --dose-ratio 0"), 1);
  EXPECT_THAT(err(), HasSubstr("\"0\" is not a number from 0.1 to 100"));
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
