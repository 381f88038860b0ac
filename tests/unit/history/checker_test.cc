#include "history/checker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <tuple>

namespace lockbench::history {
namespace {

using testing::ElementsAre;
using Kind = Model::Kind;

/// "p0 acquire ok 1..2 =17", with several operations separated by ";".
History history_of(std::string_view text) {
  History history;
  history.keys = {"k"};
  history.processes = {"0", "1", "2"};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::istringstream words{std::string(text.substr(0, end))};
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string process, f, outcome, times, value;
    if (!(words >> process >> f >> outcome >> times)) break;
    words >> value;
    Operation& one = history.operations.emplace_back();
    one.line = static_cast<std::uint32_t>(history.operations.size());
    one.process = process.at(1) - '0';
    one.f = static_cast<Function>(std::ranges::find(kFunctions, f) - kFunctions.begin());
    one.outcome = static_cast<Outcome>(std::ranges::find(kOutcomes, outcome) - kOutcomes.begin());
    one.begin = std::stoll(times);
    if (outcome != "info") one.end = std::stoll(times.substr(times.find("..") + 2));
    if (!value.empty()) one.value = std::stoll(value.substr(1));
  }
  return history;
}

Judgement judged(std::string_view text, const std::string& model = "mutex") {
  return judge(history_of(text), parse_model(model).value()).value();
}

std::uint64_t contradictions(std::string_view text, const std::string& model = "mutex") {
  return judged(text, model).contradictions;
}

TEST(HistoryChecker, ShowsTheOperationsThatCannotAllBeRight) {
  const Judgement judgement = judged(
      "p2 acquire ok 0..1; p2 release ok 2..3; p0 acquire ok 4..5; p0 release ok 9..10;"
      "p1 acquire ok 6..7; p1 release ok 8..9; p2 acquire ok 20..21");
  EXPECT_EQ(judgement.contradictions, 1U);
  ASSERT_TRUE(judgement.first);
  EXPECT_EQ(judgement.first->why, "two processes hold the lock at once");
  EXPECT_THAT(judgement.first->operations, ElementsAre(2, 4, 5, 3));
}

TEST(HistoryChecker, AnIndefiniteOperationIsTheLastOfItsProcess) {
  EXPECT_EQ(contradictions("p0 acquire info 1..; p1 acquire ok 2..3"), 0U);
  EXPECT_EQ(judge(history_of("p0 acquire info 1..; p0 release ok 4..5"), {}).error(),
            "2: its process still carries out the operation of line 1; after an indefinite one, "
            "another process must go on");
}

TEST(HistoryChecker, OnlyWhatIsHeldIsReleased) {
  const Judgement judgement = judged("p0 acquire ok 1..2; p0 release ok 3..4; p0 release ok 5..6");
  ASSERT_TRUE(judgement.first);
  EXPECT_EQ(judgement.first->why, "the process releases what it does not hold");
  EXPECT_THAT(judgement.first->operations, ElementsAre(1, 2));
}

TEST(HistoryChecker, OnlyAReentrantLockIsAcquiredTwice) {
  const std::string twice = "p0 acquire ok 1..2; p0 acquire ok 3..4; p0 release ok 5..6";
  EXPECT_EQ(judged(twice).first->why, "the process acquires what it holds already");
  EXPECT_EQ(contradictions(twice, "reentrant"), 0U);
  EXPECT_EQ(contradictions(twice + "; p1 acquire ok 7..8", "reentrant"), 1U);
  EXPECT_EQ(contradictions(twice + "; p0 release ok 7..9; p1 acquire ok 7..8", "reentrant"), 0U);
}

TEST(HistoryChecker, SharersExcludeOnlyOthers) {
  const std::string two = "p0 acquire-shared ok 1..2; p1 acquire-shared ok 3..4; ";
  EXPECT_EQ(contradictions(two, "shared"), 0U);
  EXPECT_EQ(contradictions(two + "p2 acquire ok 5..6", "shared"), 1U);
  EXPECT_EQ(judge(history_of(two), {}).error(), "1: operations in shared mode need --model shared");
}

TEST(HistoryChecker, ASemaphoreHasItsPermits) {
  const std::string three = "p0 acquire ok 1..2; p1 acquire ok 3..4; p2 acquire ok 5..6";
  EXPECT_EQ(contradictions(three, "semaphore:3"), 0U);
  const Judgement judgement = judged(three, "semaphore:2");
  EXPECT_EQ(judgement.contradictions, 1U);
  EXPECT_THAT(judgement.first->operations, ElementsAre(0, 1, 2));
}

TEST(HistoryChecker, FencingNumbersGrow) {
  EXPECT_EQ(contradictions("p0 acquire ok 1..2 =5; p1 acquire ok 3..4 =4", "fenced"), 1U);
  EXPECT_EQ(contradictions("p0 acquire ok 1..3 =5; p1 acquire ok 2..4 =4", "fenced"), 0U);
  EXPECT_EQ(contradictions("p0 acquire ok 1..3 =5; p1 acquire ok 2..4 =5", "fenced"), 1U);
  EXPECT_EQ(judge(history_of("p0 acquire ok 1..2"), {.kind = Kind::fenced}).error(),
            "1: a grant without a fencing number, which --model fenced needs");
}

TEST(HistoryChecker, WithoutContentionNothingIsProven) {
  EXPECT_EQ(judged("p0 acquire ok 1..2; p0 release ok 3..4; p1 acquire ok 5..6").contended, 0U);
  EXPECT_EQ(judged("p0 acquire ok 1..2; p0 release ok 5..6; p1 acquire ok 3..7").contended, 1U);
  EXPECT_EQ(
      judged("p0 acquire ok 1..2; p0 release ok 5..6; p1 acquire ok 3..7", "semaphore:2").contended,
      0U);
}

TEST(HistoryChecker, KnowsItsModelsByName) {
  for (const char* const name : {"mutex", "reentrant", "shared", "semaphore:3", "fenced"}) {
    EXPECT_EQ(to_string(parse_model(name).value()), name);
  }
  for (const char* const wrong : {"", "mutexes", "semaphore", "semaphore:", "semaphore:0",
                                  "semaphore:x", "semaphore:3x", "semaphore:-1"}) {
    EXPECT_EQ(parse_model(wrong).error(),
              fmt::format("\"{}\" is not a model; allowed: mutex, reentrant, shared, semaphore:N "
                          "(N from 1 to 1000000), fenced",
                          wrong));
  }
}

// The same by trying all orders.

struct State {
  std::array<int, 10> held{}, shared{};  ///< by process: how often
  std::int64_t floor = 0;
  bool operator<(const State& other) const {
    return std::tie(held, shared, floor) < std::tie(other.held, other.shared, other.floor);
  }
};

/// Carries out the operation; false if the lock would not.
bool step(State& state, const Operation& one, const Model& model) {
  const auto me = static_cast<std::size_t>(one.process);
  const auto sum = [](const auto& of) { return std::accumulate(of.begin(), of.end(), 0); };
  if (model.kind == Kind::fenced) {
    if (!acquires(one.f)) return true;
    const bool fits = 2 * one.value + (is_shared(one.f) ? 1 : 0) >= state.floor;
    state.floor = 2 * one.value + (is_shared(one.f) ? 1 : 2);
    return fits;
  }
  int& mine = (is_shared(one.f) ? state.shared : state.held)[me];
  if (!acquires(one.f)) return mine-- > 0;
  const bool again = mine > 0;
  const int permits = static_cast<int>(model.permits);
  const bool free = is_shared(one.f) ? sum(state.held) == 0 && !again
                    : model.kind == Kind::reentrant
                        ? sum(state.held) == mine
                        : sum(state.held) < permits && !again && sum(state.shared) == 0;
  ++mine;
  return free;
}

/// All orders in which operations take effect between their begin and end, those of a process in
/// their own order, with or without each of the indefinite ones.
class AllOrders {
 public:
  AllOrders(const std::vector<Operation>& operations, const Model& model) : model_(model) {
    for (const Operation& one : operations) {
      const bool unknown = one.outcome == Outcome::info && model.kind == Kind::fenced;
      if (one.outcome != Outcome::fail && !unknown) operations_.push_back(one);
    }
  }

  bool explain(unsigned done = 0, const State& state = {}) {
    bool all = true;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      all = all && (is_done(done, i) || operations_[i].outcome == Outcome::info);
    }
    if (all) return true;
    if (!seen_.emplace(done, state).second) return false;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      State next = state;
      if (may_be_next(done, i) && step(next, operations_[i], model_) &&
          explain(done | (1U << i), next)) {
        return true;
      }
    }
    return false;
  }

 private:
  static bool is_done(unsigned done, std::size_t i) { return ((done >> i) & 1U) != 0; }

  bool may_be_next(unsigned done, std::size_t i) const {
    if (is_done(done, i)) return false;
    const Operation& one = operations_[i];
    for (std::size_t j = 0; j < operations_.size(); ++j) {
      const Operation& other = operations_[j];
      const bool same = other.process == one.process &&
                        (is_shared(other.f) == is_shared(one.f) || model_.kind == Kind::fenced);
      if (is_done(done, j) || other.outcome == Outcome::info) continue;
      if (other.end < one.begin || (j < i && same)) return false;
    }
    return true;
  }

  const Model model_;
  std::vector<Operation> operations_;  ///< those of a process in their order
  std::set<std::pair<unsigned, State>> seen_;
};

class RandomHistory {
 public:
  RandomHistory(std::uint64_t seed, const Model& model) : random_(seed), model_(model) {}

  History make() {
    History history;
    history.keys = {"k"};
    const auto most = static_cast<std::size_t>(below(8));
    for (std::size_t client = 1; client <= 3; ++client) {
      std::int64_t now = below(6);
      bool holds = false, ends = true;
      while (history.operations.size() < most * client / 3) {
        if (ends) history.processes.push_back(std::to_string(history.processes.size()));
        const bool takes = below(6) == 0 ? below(2) == 0 : !holds;
        Operation one{.value = below(5)};
        one.process = static_cast<std::int32_t>(history.processes.size()) - 1;
        one.outcome = static_cast<Outcome>(std::max<std::int64_t>(below(8) - 5, 0));
        const bool modes = model_.kind == Kind::shared || model_.kind == Kind::fenced;
        const bool shared = modes && below(2) == 0;
        one.f = takes ? (shared ? Function::acquire_shared : Function::acquire)
                      : (shared ? Function::release_shared : Function::release);
        one.begin = now += below(4);
        now += below(4);
        ends = one.outcome == Outcome::info;
        if (!ends) one.end = now;
        if (one.outcome != Outcome::fail) holds = takes && !ends;
        history.operations.push_back(one);
      }
    }
    return history;
  }

 private:
  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }

  std::mt19937_64 random_;
  const Model model_;
};

class CheckerOfRandomHistories : public testing::TestWithParam<const char*> {};

TEST_P(CheckerOfRandomHistories, AgreesWithTryingAllOrders) {
  constexpr int kHistories = 100'000;
  const Model model = parse_model(GetParam()).value();
  RandomHistory random(1, model);
  int explained = 0;
  for (int i = 0; i < kHistories; ++i) {
    const History history = random.make();
    const Judgement judgement = judge(history, model).value();
    const bool possible = AllOrders(history.operations, model).explain();
    ASSERT_EQ(judgement.contradictions == 0, possible) << "history " << i;
    explained += possible ? 1 : 0;
    if (!judgement.first) continue;
    std::vector<Operation> shown;
    for (const auto place : judgement.first->operations) {
      shown.push_back(history.operations[place]);
    }
    EXPECT_FALSE(AllOrders(shown, model).explain()) << "shown of history " << i;
  }
  EXPECT_GT(explained, kHistories / 10);
  EXPECT_LT(explained, kHistories * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Models, CheckerOfRandomHistories,
                         testing::Values("mutex", "reentrant", "shared", "semaphore:1",
                                         "semaphore:2", "fenced"));

}  // namespace
}  // namespace lockbench::history
