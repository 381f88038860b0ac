#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "loadgen/experiments/capacity_experiment.h"
#include "loadgen/record/histogram.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using results::Decision;
using testing::HasSubstr;
using testing::IsEmpty;

/// 1000 sections of 2 ms in 10 s; `long_waits` of them waited for 50 ms, the others for 1 ms.
results::Run run_with(int long_waits) {
  HistogramSnapshot waits, holds;
  for (int i = 0; i < 1000; ++i) {
    waits.record(i < long_waits ? 50ms : 1ms);
    holds.record(2ms);
  }
  results::Run run;
  run.duration_seconds = 10;
  run.sections = run.outcomes.acquired = 1000;
  run.sections_per_second = 100;
  run.acquire = to_distribution(waits);
  run.hold = to_distribution(holds);
  run.server_cpu_seconds_per_section = 20e-6;
  run.generator.cpu_share = 0.1;
  return run;
}

std::vector<results::Threshold> objective(const char* text = "acquire.p99<20ms") {
  return {results::parse_threshold(text).value()};
}

StepRuling judged(const results::Run& run, const char* text = "acquire.p99<20ms") {
  return judge_step(run, objective(text));
}

TEST(CapacityStep, KeepsTheObjectiveOrSaysByWhatItMisses) {
  const StepRuling kept = judged(run_with(5));
  EXPECT_TRUE(kept.met && kept.valid);
  EXPECT_THAT(kept.reason, IsEmpty());
  EXPECT_FALSE(judged(run_with(20)).met);
  EXPECT_THAT(judged(run_with(20)).reason, HasSubstr("acquire.p99 is 5"));
}

TEST(CapacityStep, WhatWasGivenUpDoesNotFlatter) {
  results::Run run = run_with(0);
  run.outcomes.failed = 10;
  EXPECT_TRUE(judged(run).met);
  run.outcomes.failed = 11;
  EXPECT_FALSE(judged(run).met);
  EXPECT_THAT(judged(run).reason, HasSubstr("11 of 1011 sections timed out"));
  run = run_with(0);
  run.outcomes.acquired = run.acquire.count = 0;
  EXPECT_FALSE(judged(run, "acquire.p99>=0").met);
}

TEST(CapacityStep, TheGeneratorsFaultMakesItInvalidButLateSectionsDoNot) {
  results::Run run = run_with(0);
  run.generator.reasons = {std::string(results::kNotTheLoadAskedFor) + ": late"};
  EXPECT_TRUE(judged(run).valid);
  run.generator.reasons.emplace_back("idle clients started late");
  EXPECT_FALSE(judged(run).valid);
  EXPECT_THAT(judged(run).reason, HasSubstr("idle clients started late"));
}

RateRuling ruling(const std::vector<results::Run>& runs, double rate = 100) {
  return judge_rate(rate, runs, objective(), {});
}

TEST(CapacityRate, IsDecidedByAllStepsTogether) {
  std::vector<results::Run> runs(6, run_with(2));
  const RateRuling kept = ruling(runs);
  EXPECT_EQ(kept.decision, Decision::kept);
  EXPECT_EQ(kept.rate.samples, 6000U);
  EXPECT_EQ(kept.rate.missed_steps, 0U);
  EXPECT_THAT(kept.rate.reason, HasSubstr("acquire.p99 is 1.01 ms to 1.01 ms"));
  // A late miss counts as much as an early one.
  runs.push_back(run_with(300));
  EXPECT_EQ(ruling(runs).decision, Decision::open);
  EXPECT_EQ(ruling(runs).rate.missed_steps, 1U);
  runs.assign(6, run_with(30));
  EXPECT_EQ(ruling(runs).decision, Decision::missed);
}

TEST(CapacityRate, SaysWhatItLacks) {
  EXPECT_THAT(ruling(std::vector(2, run_with(0))).rate.reason,
              HasSubstr("2000 samples in 2 steps decide nothing yet"));
  HistogramSnapshot waits;
  for (int i = 0; i < 100; ++i) waits.record(1ms);
  results::Run small = run_with(0);
  small.acquire = to_distribution(waits);
  EXPECT_THAT(ruling({small}).rate.reason,
              HasSubstr("100 samples in 1 step decide nothing yet: another 900 take 9 s"));
}

TEST(CapacityRate, OfDisturbedStepsIsOnlyEverKept) {
  const auto disturbed = [](int long_waits) {
    std::vector<results::Run> runs(6, run_with(long_waits));
    for (results::Run& run : runs) run.generator.reasons = {"steal"};
    return ruling(runs);
  };
  EXPECT_EQ(disturbed(2).decision, Decision::kept);
  EXPECT_EQ(disturbed(30).decision, Decision::open);
  EXPECT_EQ(disturbed(30).rate.invalid_steps, 6U);
  EXPECT_EQ(disturbed(30).rate.samples, 6000U);
  EXPECT_THAT(disturbed(30).rate.reason, HasSubstr("6 of 6 steps were disturbed"));
  EXPECT_TRUE(disturbed(30).hindered) << "so that the search goes on elsewhere";
  EXPECT_FALSE(disturbed(10).hindered);
}

TEST(CapacityRate, IsMissedWhereTheLoadIsNotServed) {
  std::vector<results::Run> runs(6, run_with(0));
  for (results::Run& run : runs) run.outcomes.abandoned = 100;
  EXPECT_EQ(ruling(runs).decision, Decision::missed);
  EXPECT_THAT(ruling(runs).rate.reason, HasSubstr("600 of 6600 sections"));
  for (results::Run& run : runs) run.outcomes = {.acquired = 1000, .failed = 100};
  EXPECT_EQ(ruling(runs).decision, Decision::open) << "perhaps a server is gone";
}

TEST(CapacityRate, CountsWhatWasGrantedAfterItsStepsAsServed) {
  std::vector<results::Run> runs(6, run_with(0));
  for (results::Run& run : runs) run.outcomes.acquired = 900;
  EXPECT_EQ(ruling(runs).decision, Decision::kept);
}

TEST(CapacityRate, IsNotKeptBeyondItsOwnCeiling) {
  const std::vector<results::Run> runs(6, run_with(0));
  EXPECT_EQ(ruling(runs, 480).decision, Decision::kept);
  const RateRuling beyond = ruling(runs, 505);
  EXPECT_EQ(beyond.decision, Decision::missed);
  EXPECT_THAT(beyond.rate.reason, HasSubstr("no more than 5"));
  EXPECT_EQ(judge_rate(505, runs, objective(), {.excludes = false}).decision, Decision::kept);
}

TEST(CapacityRate, SaysForWhichShareOfTheTimeTheLockWasTaken) {
  std::vector<results::Run> runs(5, run_with(0));
  EXPECT_NEAR(ruling(runs).rate.rho, 0.2, 0.002) << "100 holds of 2 ms a second";
  HistogramSnapshot turnarounds;
  turnarounds.record(3ms);
  for (results::Run& run : runs) {
    run.turnaround = to_distribution(turnarounds);
    run.awaited_releases = 500;
  }
  EXPECT_NEAR(ruling(runs).rate.rho, 0.35, 0.004) << "and 50 handoffs of 3 ms";
  for (results::Run& run : runs) run.duration_seconds = 1;
  EXPECT_EQ(ruling(runs).rate.rho, 1);
}

/// A distribution whose median is its mean and whose 99th percentile is twice that.
results::Distribution around(double seconds, std::uint64_t count = 1000) {
  return {.count = count, .mean = seconds, .p50 = seconds, .p99 = 2 * seconds};
}

/// An unremarkable run: 100 sections of 2 ms per second.
results::Run calm_run() {
  results::Run run;
  run.sections_per_second = 100;
  run.outcomes.acquired = 1000;
  run.acquire = run.acquire_service = around(100e-6);
  run.hold = around(0.002);
  run.turnaround = around(200e-6, 50);
  run.sections = run.awaited_releases = 1000;
  run.release = around(100e-6);
  run.server_cpu_seconds_per_section = 20e-6;
  run.generator.cpu_share = 0.1;
  return run;
}

/// What limits a run that differs from the calm one.
struct LimitCase {
  std::string name;
  std::function<void(results::Run&)> change;
  std::string limit, reason;
  std::uint64_t clients = 32;
  LockShare lock{};
  double store_cores = 1;
  int cores = 2;
  std::string_view store = "the store";
};

void rate_of_430(results::Run& run) { run.sections_per_second = 430; }

/// Sections without hold time that cost the store this much CPU time.
std::function<void(results::Run&)> without_hold(double rate, double cpu_seconds,
                                                double generator = 0.1) {
  return [=](results::Run& run) {
    run.hold = around(0);
    run.turnaround = {};
    run.release = around(1e-6);
    run.sections_per_second = rate;
    run.server_cpu_seconds_per_section = cpu_seconds;
    run.generator.cpu_share = generator;
  };
}

/// A store with unknown CPU time, on a machine with this load.
std::function<void(results::Run&)> silent_store(double machine) {
  return [=](results::Run& run) {
    run.server_cpu_seconds_per_section.reset();
    run.generator.cpu_share = 0.3;
    run.generator.machine_cpu_share = machine;
  };
}

/// A store with two cores, on a machine with `cores`.
LimitCase with_two_cores(LimitCase one, int cores = 2, std::string_view store = "the store") {
  one.store_cores = 2;
  one.cores = cores;
  one.store = store;
  return one;
}

const std::vector<LimitCase>& limit_cases() {
  const auto p99 = [](double seconds) {
    return [=](results::Run& run) { run.acquire.p99 = seconds; };
  };
  const auto thread = [](double share) {
    return [=](results::Run& run) { run.generator.busiest_thread_share = share; };
  };
  const auto slow_service = [](results::Run& run) {
    run.acquire_service = around(0.0075);
    run.turnaround = {};
  };
  static const std::vector<LimitCase> cases{
      {"the lock that is nearly always taken", rate_of_430, "lock",
       "with hold 2 ms, and handoff 200 µs after 100 % of the releases, at most 455 sections/s are "
       "possible"},
      {"a lock that excludes nobody", rate_of_430, "unknown", "", 32, {.excludes = false}},
      {"one of many keys", rate_of_430, "unknown", "", 32, {.busiest_key = 0.25}},
      {"one of many keys that is busy",
       [](auto& run) { run.sections_per_second = 1720; },
       "lock",
       "1.82k sections/s",
       32,
       {.busiest_key = 0.25}},
      {"an objective without room for waiting", p99(0.0013), "lock",
       "waiting for one other client takes 1.2 ms on average"},
      {"waits that others do not explain", p99(0.0011), "unknown", ""},
      {"the store's one core", without_hold(45'000, 20e-6), "store", "", 64},
      with_two_cores({"half of the store's cores", without_hold(45'000, 20e-6), "unknown", "", 64},
                     16),
      with_two_cores({"a full machine, mostly the store's", without_hold(1000, 1.3e-3, 0.3),
                      "store", "65 % for the store and 30 % for the generator", 64}),
      with_two_cores({"a full machine, mostly the generator's", without_hold(1000, 0.8e-3, 0.55),
                      "generator", "", 64}),
      {"a full machine", [](auto& run) { run.generator.cpu_share = 0.95; }, "generator", ""},
      with_two_cores({"a silent store on a full machine", silent_store(0.97), "store",
                      "67 % for other programs, zookeeper perhaps among them"},
                     2, "zookeeper"),
      with_two_cores({"a silent store on an idle machine", silent_store(0.4), "unknown",
                      "the CPU of zookeeper is unknown"},
                     2, "zookeeper"),
      {"a full thread of the generator", thread(0.97), "generator", "busy 97 % of the time"},
      {"a busy thread of the generator", thread(0.6), "unknown", ""},
      {"too few clients, by Little's law", slow_service, "clients", "of 1 clients were busy", 1},
      {"clients enough", slow_service, "unknown", "", 2},
  };
  return cases;
}

TEST(CapacityLimit, IsTheResourceThatIsBusy) {
  for (const LimitCase& one : limit_cases()) {
    results::Run run = calm_run();
    one.change(run);
    const Limit limit = name_limit({.run = run,
                                    .clients = one.clients,
                                    .lock = one.lock,
                                    .store = one.store,
                                    .store_cores = one.store_cores,
                                    .cores = one.cores});
    EXPECT_EQ(limit.name, one.limit) << one.name << ": " << limit.reason;
    EXPECT_THAT(limit.reason, HasSubstr(one.reason)) << one.name;
  }
}

TEST(CapacityLimit, TheGeneratorMakesTheAnswerNoneOfTheLocks) {
  results::Run run = calm_run();
  rate_of_430(run);
  run.generator.reasons = {"the load generator used 95 % of the CPU"};
  LimitEvidence evidence{.run = run, .clients = 32, .cores = 2, .step_valid = false};
  EXPECT_EQ(name_limit(evidence).name, "generator");
  EXPECT_THAT(name_limit(evidence).reason, HasSubstr("used 95 % of the CPU"));
  evidence.step_valid = true;
  evidence.steps = 20;
  evidence.invalid_steps = 12;
  EXPECT_EQ(name_limit(evidence).name, "generator");
  EXPECT_THAT(name_limit(evidence).reason, HasSubstr("12 of 20 steps were not valid"));
  evidence.invalid_steps = 2;
  EXPECT_EQ(name_limit(evidence).name, "lock");
}

}  // namespace
}  // namespace lockbench::loadgen
