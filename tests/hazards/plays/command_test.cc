#include <gmock/gmock.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/integration/support/program.h"

// `lockbench hazards` as a program that also has the tests' strategies.

namespace lockbench::hazards::test {
namespace {

using testing::HasSubstr;
using testing::Not;

using lockbench::test::Outcome, lockbench::test::Program, lockbench::test::Scratch;

class Command : public testing::Test {
 protected:
  /// The exit code of the first undisturbed one of at most three tries.
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
  EXPECT_EQ(run("late-release --strategies test-unchecked-release,redis-set-nx --format junit"), 3);
  EXPECT_THAT(out(), HasSubstr("tests=\"2\" failures=\"1\" errors=\"0\""));
}

TEST_F(Command, ExplainsOnePlay) {
  EXPECT_EQ(run("--explain pause-holding/redis-set-nx-lua --svg play.svg"), 0) << err();
  EXPECT_THAT(out(), HasSubstr("holder is stopped"));
  const auto cell = result().at("hazards").at(0);
  EXPECT_EQ(cell.at("observed"), "lost-update");
  EXPECT_EQ(cell.at("evidence").at("lost_updates"), 1);
  const std::string picture = lockbench::test::read_file(scratch_ / "play.svg");
  EXPECT_THAT(picture, HasSubstr("fill=\"#fde7e4\"")) << "both treat the lock as their own";
  EXPECT_THAT(picture, HasSubstr("fill-opacity")) << "the holder while it is stopped";
}

TEST_F(Command, PlaysOnSimulatedMachines) {
  EXPECT_EQ(run("late-release --simulated --strategies redis-set-nx,redis-set-nx-lua"), 0) << err();
  EXPECT_THAT(out(), HasSubstr("played on simulated machines"));
  const auto cells = result().at("hazards");
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells.at(0).at("observed"), "foreign-release");
  EXPECT_EQ(cells.at(0).at("evidence").at("simulated"), true);
  EXPECT_EQ(run("late-release --simulated --strategies test-unchecked-release"), 3);
  EXPECT_EQ(run("late-release --simulated --strategies local-mutex"), 1);
  EXPECT_THAT(err(), AllOf(HasSubstr("local-mutex cannot be simulated"), HasSubstr("; these can: "),
                           HasSubstr("redis-set-nx-lua, ")));
}

TEST_F(Command, WritesTheHistoryOfThePlays) {
  const std::string history = (scratch_ / "h.edn").string();
  const auto check = [&] { return Program(scratch_, {"check", history}).finish(); };
  // The holder is stopped while it holds the lock, until a second client has it too.
  EXPECT_EQ(run("pause-holding --strategies redis-set-nx-lua --history " + history), 0) << err();
  const Outcome violated = check();
  EXPECT_EQ(violated.code, 3) << violated.err;
  EXPECT_THAT(violated.out, HasSubstr("\npause-holding/redis-set-nx-lua:"));
  EXPECT_THAT(violated.out, HasSubstr("): two processes hold the lock at once\n"));
  // The holder dies, and so holds nothing when the lock expires.
  EXPECT_EQ(run("crash-holding --strategies redis-set-nx-lua --history " + history), 0) << err();
  const Outcome explained = check();
  EXPECT_EQ(explained.code, 0) << explained.out;
}

TEST_F(Command, ReportsACellThatDoesNotAlwaysEndAlike) {
  EXPECT_EQ(run("late-release --strategies test-flickers --repeat 4"), 3);
  EXPECT_THAT(err(), HasSubstr("unstable: late-release / test-flickers"));
  const auto saved = result();
  ASSERT_EQ(saved.at("hazards").size(), 1U);
  EXPECT_EQ(saved.at("hazards").at(0).at("evidence").at("unstable"), true);
  EXPECT_EQ(saved.at("hazards").at(0).at("observed"), "foreign-release");
}

TEST_F(Command, RefusesWhatItDoesNotKnowOrDoesNotFitTogether) {
  const std::pair<std::string, std::string> refused[] = {
      {"late-release --explain late-release/redis-set-nx", "--explain names its scenario"},
      {"late-relase --strategies redis-set-nx", "did you mean late-release"},
      {"late-release --strategies redis-set-ny", "no such strategy"},
      {"--svg play.svg late-release", "--svg requires --explain"},
      {"--explain late-release", "SCENARIO/STRATEGY"}};
  for (const auto& [arguments, said] : refused) {
    EXPECT_EQ(run(arguments), 1) << arguments;
    EXPECT_THAT(err(), HasSubstr(said)) << arguments;
  }
}

}  // namespace
}  // namespace lockbench::hazards::test
