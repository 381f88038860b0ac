#include <nlohmann/json.hpp>

#include "tests/unit/choose/fixtures.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// Far from a load of 32 clients that keep their lock busy for 70 % of the time.
const Requirements kFarLoad{.work_p50 = 20ms, .clients = 640, .rate = 20};
const Requirements kNearLoad{.work_p50 = 1ms, .clients = 32, .rate = 700};

/// Measured with these p50 of acquiring, and simulated with others.
class SimulatedFigure : public testing::Test {
 protected:
  void add(std::string_view name, std::optional<double> measured_p50,
           std::optional<double> simulated_p50) {
    catalogue_.push_back(&descriptors_.emplace_back(made_up(name)));
    if (measured_p50) file_.runs.push_back(measured(name, *measured_p50));
    if (simulated_p50) simulations_.emplace(name, measured(name, *simulated_p50));
  }
  results::Run& simulation_of(const char* name) { return simulations_.at(name); }

  Answer with(const Requirements& requirements) const {
    return choose(requirements, &simulations_);
  }
  Answer without(const Requirements& requirements) const { return choose(requirements, nullptr); }

 private:
  Answer choose(const Requirements& requirements, const Simulations* simulations) const {
    return lockbench::choose::choose(requirements, catalogue_, Evidence({{"mine.json", file_}}, {}),
                                     nullptr, simulations);
  }

  std::deque<Descriptor> descriptors_;
  std::vector<const Descriptor*> catalogue_;
  results::Result file_ = under(32, {});
  Simulations simulations_;
};

TEST_F(SimulatedFigure, WhatFallsFarBehindUnderTheRequiredLoadComesLast) {
  add("polled", 1e-3, 2.0);
  add("queue", 10e-3, 5e-3);
  add("twin", 30e-3, 9e-3);
  EXPECT_THAT(names(without(kFarLoad).ranked), ElementsAre("polled", "queue", "twin"));
  const Answer answer = with(kFarLoad);
  EXPECT_THAT(names(answer.ranked), ElementsAre("queue", "twin", "polled"))
      << "twice as bad is not enough: the measured tier decides";
  EXPECT_EQ(candidate(answer, "polled").value, 2e-3) << "still what was measured";
  EXPECT_EQ(candidate(answer, "polled").simulated->value, 4);
}

TEST_F(SimulatedFigure, IsNotComparedWithWhatCannotBeSimulated) {
  add("a-database", 5e-3, std::nullopt);
  add("fast", 1e-3, 50.0);
  add("faster", 9e-4, 40.0);
  EXPECT_THAT(names(with(kFarLoad).ranked), ElementsAre("faster", "fast", "a-database"))
      << "as measured: the simulated ones are alike, however slow";
}

TEST_F(SimulatedFigure, WithoutAMeasurementItComesAfterThoseWithOneAndBeforeThoseWithNothing) {
  add("b-unheard", std::nullopt, std::nullopt);
  add("c-slow", std::nullopt, 1.0);
  add("d-quick", std::nullopt, 1e-3);
  add("measured", 5.0, std::nullopt);
  const Answer answer = with(kNearLoad);
  EXPECT_THAT(names(answer.ranked), ElementsAre("measured", "d-quick", "c-slow", "b-unheard"));
  EXPECT_EQ(candidate(answer, "d-quick").value, std::nullopt);
  EXPECT_EQ(candidate(answer, "d-quick").tier, 0);
}

TEST_F(SimulatedFigure, IsSaidApartFromWhatWasMeasured) {
  add("measured", 3e-3, 7e-3);
  add("unheard", std::nullopt, 4e-3);
  const Answer answer = with(kFarLoad);
  const std::string text = to_text(answer, {}, true);
  EXPECT_THAT(text, HasSubstr("acquire.p99 6 ms, simulated under your load 14 ms"));
  EXPECT_THAT(text, HasSubstr("acquire.p99 not measured, simulated under your load 8 ms"));
  EXPECT_THAT(text, HasSubstr("your load"));
  const auto qualify = nlohmann::json::parse(to_json(answer)).at("qualify");
  EXPECT_EQ(qualify.at(1).at("value"), nullptr);
  EXPECT_EQ(qualify.at(1).at("simulated").at("value"), 8e-3);
  EXPECT_EQ(qualify.at(1).at("simulated").at("at_least"), false);
  EXPECT_EQ(nlohmann::json::parse(to_json(without(kFarLoad))).at("qualify").at(0).at("simulated"),
            nullptr);
  EXPECT_THAT(to_text(without(kFarLoad), {}, true), Not(HasSubstr("simulated")));
}

Requirements with_objective(Requirements requirements) {
  requirements.slos = {results::parse_threshold("acquire.p99<20ms").value()};
  return requirements;
}

TEST_F(SimulatedFigure, NeverKeepsAnObjective) {
  add("kept", std::nullopt, 1e-3);
  add("missed", std::nullopt, 1.0);
  const Answer answer = with(with_objective(kNearLoad));
  EXPECT_THAT(candidate(answer, "kept").in_favour,
              Not(Contains(Field(&Reason::requirement, StartsWith("--slo")))));
  EXPECT_THAT(candidate(answer, "kept").conditions.at(0).text,
              "simulated, not measured: acquire.p99 is 2 ms: run choose --measure");
  EXPECT_EQ(candidate(answer, "kept").conditions.at(0).kept, std::nullopt);
  EXPECT_TRUE(candidate(answer, "missed").qualifies()) << "nor does it rule out";
  EXPECT_THAT(candidate(answer, "missed").conditions.at(0).text,
              StartsWith("simulated, not measured: missed, acquire.p99 is 2 s"));
}

TEST_F(SimulatedFigure, AnObjectiveThatItMissesWasNotShownByAnotherLoad) {
  add("a-polled", 1e-3, 1.0);
  add("queue", 2e-3, 2e-3);
  const Requirements required = with_objective(kFarLoad);
  EXPECT_THAT(names(without(required).ranked), ElementsAre("a-polled", "queue"));
  const Answer answer = with(required);
  EXPECT_THAT(names(answer.ranked), ElementsAre("queue", "a-polled"));
  const Reason& doubtful = candidate(answer, "a-polled").conditions.at(0);
  EXPECT_EQ(doubtful.kept, std::nullopt);
  EXPECT_THAT(doubtful.text, AllOf(HasSubstr("not measured under that load: acquire.p99 is 2 ms"),
                                   HasSubstr("simulated, not measured: missed")));
  EXPECT_EQ(candidate(answer, "queue").conditions.at(0).kept, true);
}

TEST_F(SimulatedFigure, ThatItDoesNotKeepUpIsACondition) {
  add("lags", 1e-3, 1e-3);
  simulation_of("lags").outcomes = {.acquired = 60, .timed_out = 40};
  EXPECT_THAT(candidate(with(kFarLoad), "lags").conditions,
              Contains(Field(&Reason::text, HasSubstr("simulated, not measured: it served 60 %"))));
}

TEST(RunsAlone, IsOfTheStrategyOrElseOfItsStore) {
  const auto alone = [](const char* strategy, const char* backend) {
    results::Run run = measured(strategy, 1);
    run.backend = backend;
    run.load.name = "alone";
    return run;
  };
  results::Result mine = results::minimal_result(), others = mine;
  mine.runs = {alone("a", "redis"), alone("b", "redis"), alone("a", "redis"), measured("c", 1)};
  others.runs = {alone("c", "redis"), alone("d", "etcd")};
  const Evidence evidence({{"mine", mine}}, {{"reference", others}});
  const auto found = [&](const Descriptor& strategy) {
    std::string all;
    for (const results::Run& run : evidence.alone(strategy).runs) all += run.strategy;
    return all;
  };
  EXPECT_EQ(found(made_up("b")), "b");
  EXPECT_EQ(found(made_up("c")), "aa") << "the user's machine, rather than the same strategy";
  Descriptor d = made_up("d"), e = made_up("e");
  d.backend = "etcd";
  e.backend = "nats";
  EXPECT_EQ(found(d), "d");
  EXPECT_EQ(found(e), "");
}

/// Of a real strategy that polls and one that does not, with the reference results.
Answer real(const Requirements& requirements, const Simulations* simulations = nullptr) {
  return choose(requirements,
                {find_strategy("redis-set-nx-lua"), find_strategy("redis-reentrant-notify")},
                Evidence({}, reference()), nullptr, simulations);
}

loadgen::Workload crowded(const Candidate& /*of*/) {
  loadgen::Workload load;
  load.clients = 68;
  load.keys = 23;
  load.rate = 2800;
  load.hold = loadgen::DurationDistribution::constant(2852us);
  load.acquire_timeout = 2s;
  return load;
}

// Found by tests/bench/regret.py: the first choice was 2,800 times worse than the second.
TEST(SimulatedLoad, ShowsThatAPolledLockFallsBehindWhereManyClientsShareFewLocks) {
  const Requirements requirements{
      .work_p50 = 2852us, .clients = 68, .rate = 2800, .keys = 23, .rank_by = "acquire.p50"};
  const Answer before = real(requirements);
  EXPECT_EQ(before.ranked.front().strategy->name, "redis-set-nx-lua");
  const Evidence evidence({}, reference());
  const Simulations played = simulate_unmeasured(before, evidence, crowded);
  ASSERT_EQ(played.size(), 2U);
  EXPECT_EQ(real(requirements, &played).ranked.front().strategy->name, "redis-reentrant-notify");
  EXPECT_EQ(simulate_unmeasured(before, evidence, crowded).at("redis-set-nx-lua").acquire.p99,
            played.at("redis-set-nx-lua").acquire.p99)
      << "the same each time";
}

TEST(SimulatedLoad, IsOfWhatNobodyMeasuredAndOfLoadsThatAreSoonPlayed) {
  const auto played = [](const Requirements& requirements) {
    const auto workload = [](const Candidate&) -> loadgen::Workload {
      throw std::logic_error("it is not to be played");
    };
    return simulate_unmeasured(real(requirements), Evidence({}, reference()), workload);
  };
  EXPECT_THAT(played({.clients = 32}), IsEmpty()) << "it was measured";
  EXPECT_THAT(played({.use = Use::leader}), IsEmpty()) << "no figure decides";
  EXPECT_THAT(played({.work_p50 = 1ms, .clients = 100'000, .rate = 100}), IsEmpty());
  EXPECT_THAT(played({.clients = 1, .rtt = 1h}), IsEmpty());
}

}  // namespace
}  // namespace lockbench::choose
