#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <sstream>

#include "loadgen/run/demand.h"
#include "loadgen/run/workload.h"
#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using Locks = std::vector<Wanted>;
constexpr Wanted shared(int key) { return {key, Mode::shared}; }
constexpr Wanted exclusive(int key) { return {key, Mode::exclusive}; }

tl::expected<std::vector<Locks>, std::string> read_all(const std::string& text) {
  std::istringstream lines(text);
  const auto read = read_trace(lines, "a.csv");
  if (!read) return tl::unexpected(read.error());
  std::vector<Locks> all;
  for (std::size_t i = 0; i < read->ends.size(); ++i) {
    all.emplace_back(read->of(i).begin(), read->of(i).end());
  }
  return all;
}

TEST(ReadTrace, TakesLinesOfOneTransactionTogetherAndALockOnce) {
  const std::vector<std::pair<std::string, std::vector<Locks>>> cases = {
      {"1,0,2,7,2\n1,0,2,3,1\n2,0,1,7,1\n1,0,2,9,2\n",
       {{exclusive(7), shared(3)}, {shared(7)}, {exclusive(9)}}},
      {"# made by hand\n\n5,1,16777215,2\r\n5,1,0,1\n\n6,0,1,4,1",
       {{exclusive(16'777'215), shared(0)}, {shared(4)}}},
      {"1,0,1,7,1\n1,0,1,8,1\n1,0,1,7,2\n1,0,1,8,1\n", {{exclusive(7), shared(8)}}},
  };
  for (const auto& [text, transactions] : cases) {
    const auto all = read_all(text);
    ASSERT_TRUE(all) << all.error();
    EXPECT_EQ(*all, transactions) << text;
  }
}

TEST(ReadTrace, NamesTheLineThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"1,0,1,7", "mode is neither"},
      {"1,0,1", "are expected"},
      {"1,0,1,7,2,9", "are expected"},
      {"x,0,1,7,2", "transaction"},
      {"-1,0,1,7,2", "transaction"},
      {"1,1,1,7,2", "task"},
      {"1,,1,7,2", "task"},
      {"1,0,new,7,2", "type"},
      {"1,0,1,16777216,2", "below 16777216"},
      {"1,0,1,99999999999999999999,2", "below 16777216"},
      {"1,0,1,-7,2", "lock"},
      {"1,0,1, 7,2", "lock"},
      {"1,0,1,7,3", "mode"},
      {"1,0,1,7,", "mode"},
      {"1,0,1,7,2 ", "mode"},
      {std::string("1,0,1,7,2\0x", 11), "mode"},
      {std::string(1000, '1'), "too long"},
  };
  for (const auto& [line, what] : wrong) {
    const auto all = read_all("1,0,1,6,2\n# more\n" + line + "\n");
    ASSERT_FALSE(all) << line;
    EXPECT_THAT(all.error(), StartsWith("a.csv: line 3: ")) << line;
    EXPECT_THAT(all.error(), HasSubstr(what)) << line;
  }
}

TEST(ReadTrace, BoundsTheLocksOfATransaction) {
  std::string text;
  for (std::size_t lock = 0; lock < Trace::kMostLocks; ++lock) {
    text += fmt::format("1,0,1,{},2\n", lock);
  }
  ASSERT_TRUE(read_all(text));
  EXPECT_EQ(read_all(text)->front().size(), Trace::kMostLocks);
  EXPECT_THAT(read_all(text + "1,0,1,5000,2\n").error(), StartsWith("a.csv: line 1025: too many"));
}

class TraceTest : public TraceRunTest {
 protected:
  TraceTest() {
    plan_.workload.duration = 60s;
    behaviour_.acquire = [this](const Context&, const AcquireRequest& request) {
      const std::scoped_lock lock(mutex_);
      asked_.emplace_back(request.key.substr(request.key.rfind(':') + 1));
      modes_.push_back(request.mode);
      return grant(request);
    };
  }

  Behaviour behaviour_;
  std::mutex mutex_;
  std::vector<std::string> asked_;
  std::vector<Mode> modes_;
};

TEST_F(TraceTest, IsRefusedWithoutTransactions) {
  EXPECT_EQ(Trace::read(path_).error(), path_ + ": there is no such file");
  write("# nothing\n");
  EXPECT_EQ(Trace::read(path_).error(), path_ + ": no transactions");
  EXPECT_THAT(Trace::read("/dev").error(), HasSubstr("no such file"));
}

TEST_F(TraceTest, ItsEndEndsTheRun) {
  plan_.workload.clients = 1;
  replay("1,0,1,7,2\n1,0,1,300,1\n2,0,1,8,2\n");
  EXPECT_EQ(plan_.workload.trace->keys, 301);
  EXPECT_EQ(plan_.workload.trace->transactions, 2U);
  const results::Run run = run_one(behaviour_);
  EXPECT_THAT(asked_, ElementsAre("7}", "300}", "8}"));
  EXPECT_THAT(modes_, testing::Each(Mode::exclusive)) << "the lock has no shared mode";
  EXPECT_EQ(run.sections, 2U);
  EXPECT_EQ(run.load.trace, path_);
  EXPECT_LT(run.duration_seconds, 10);
  EXPECT_DOUBLE_EQ(watcher_.done.back(), 1);
}

TEST_F(TraceTest, ItsEndWaitsForSectionsUnderWay) {
  hold(20ms);
  replay("1,0,1,7,2\n2,0,1,8,2\n3,0,1,9,2\n");
  const results::Run run = run_one(behaviour_);
  EXPECT_EQ(run.sections, 3U);
  EXPECT_EQ(run.hold.count, 3U) << "no hold was cut short";
  EXPECT_GE(run.hold.min, 0.02);
}

TEST_F(TraceTest, ItsEndInTheWarmUpMakesTheRunInvalid) {
  plan_.workload.warmup = 60s;
  replay("1,0,1,7,2\n");
  const results::Run run = run_one(behaviour_);
  EXPECT_FALSE(run.generator.valid);
  EXPECT_THAT(run.generator.reasons, testing::Contains(HasSubstr("ended during the warm-up")));
}

TEST_F(TraceTest, ModesReachALockThatHasThem) {
  plan_.workload.clients = 1;
  replay("1,0,1,7,2\n1,0,1,300,1\n");
  Descriptor strategy = scripted("with-modes", behaviour_);
  strategy.traits.shared = true;
  run_one(strategy);
  EXPECT_THAT(modes_, ElementsAre(Mode::exclusive, Mode::shared));
}

TEST_F(TraceTest, EachTransactionGoesToOneClient) {
  std::string text;
  for (int i = 1; i <= 500; ++i) text += fmt::format("{},0,1,{},2\n", i, i);
  replay(text);
  EXPECT_EQ(run_one(behaviour_).sections, 500U);
  EXPECT_EQ(asked_.size(), 500U);
  EXPECT_EQ(std::set<std::string>(asked_.begin(), asked_.end()).size(), 500U);
}

TEST_F(TraceTest, EachRunBeginsAtItsFront) {
  replay("1,0,1,7,2\n2,0,1,8,2\n");
  plan_.workload.repeat = 3;
  const RunReport report = run(behaviour_);
  ASSERT_EQ(report.runs.size(), 3U);
  for (const results::Run& one : report.runs) EXPECT_EQ(one.sections, 2U);
}

TEST_F(TraceTest, OneThatChangesMeanwhileIsNotReplayed) {
  replay("1,0,1,7,2\n2,0,1,8,2\n");
  write("1,0,1,7,2\n2,0,1,800,2\n");
  const RunReport report = run(behaviour_);
  ASSERT_EQ(report.not_started.size(), 1U);
  EXPECT_THAT(report.not_started[0].reason, HasSubstr("the file was changed"));
}

}  // namespace
}  // namespace lockbench::loadgen
