#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "loadgen/experiments/capacity_experiment.h"
#include "tests/unit/loadgen/around.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A lock that is kept for 2 ms by each section, at whose door 32 clients waited.
class CapacityPredictionTest : public testing::Test {
 protected:
  CapacityPredictionTest() {
    plan_.run.workload.clients = 32;
    contended_.audit.verdict = results::Verdict::exclusive;
    contended_.hold = around(0.0018);
    contended_.turnaround = contended_.handoff = around(0.0002);
    contended_.release = around(0.0002);
    contended_.commands_per_section = 2;
    contended_.sections = 1000;
    capacity_.lowest = 400;
    capacity_.highest = 450;
    for (const double rate : {100.0, 200.0, 400.0, 420.0, 450.0}) {
      capacity_.rates.push_back({.rate = rate,
                                 .decision = rate <= 400  ? "kept"
                                             : rate < 450 ? "open"
                                                          : "missed",
                                 .rho = rate * 0.002,
                                 .acquire = around(rate > 100 ? 0.004 : 0.0002)});
      rates_[rate] = {contended_, contended_};
    }
    for (const std::uint64_t clients : {1, 2, 4, 8, 16, 32}) {
      // Four fifths of a section can only be done by one at a time.
      const auto n = static_cast<double>(clients);
      capacity_.sweep.push_back({"clients", clients, 400 * n / (1 + 0.8 * (n - 1)), around(0.001)});
    }
  }

  const results::CapacityModel* model(const char* name) {
    models_ = model_capacity(plan_, capacity_, {contended_, rates_});
    const auto found = std::find_if(models_.begin(), models_.end(),
                                    [&](const auto& one) { return one.name == name; });
    return found == models_.end() ? nullptr : &*found;
  }

  CapacityPlan plan_;
  results::Capacity capacity_;
  results::Run contended_;
  std::map<double, std::vector<results::Run>> rates_;
  std::vector<results::CapacityModel> models_;
};

TEST_F(CapacityPredictionTest, TheQueueIsCheckedAtRatesThatWereRun) {
  const auto* queue = model("queue");
  ASSERT_NE(queue, nullptr);
  EXPECT_DOUBLE_EQ(queue->parameters.at("hold_mean_seconds"), 0.0018);
  EXPECT_DOUBLE_EQ(queue->parameters.at("handoff_mean_seconds"), 0.0002);
  ASSERT_EQ(queue->predictions.size(), 6U) << "half of what is kept, all of it, and what is missed";
  const results::Prediction& mean = queue->predictions[2];
  EXPECT_EQ(mean.at, "rate=400");
  EXPECT_EQ(mean.figure, "acquire.mean");
  // Waits by Pollaczek and Khinchine: 400 · 2 ms² / (2 · 0.2) = 4 ms; then it takes 0.2 ms, free or
  // handed over.
  EXPECT_NEAR(mean.predicted, 0.004 + 0.0002, 1e-9);
  ASSERT_TRUE(mean.error.has_value());
  EXPECT_NEAR(*mean.error, 0.05, 1e-6);
  EXPECT_EQ(queue->predictions[0].at, "rate=200");
  EXPECT_EQ(queue->predictions[5].at, "rate=450");
}

TEST_F(CapacityPredictionTest, OvertakingProlongsTheTailButNotTheMean) {
  const auto predicted = [&] {
    const auto& predictions = model("queue")->predictions;  // until the next call
    return std::pair(predictions[2].predicted, predictions[3].predicted);
  };
  const auto [mean, p99] = predicted();
  // Each waiting client is overtaken once, so that every second section comes in between.
  for (auto& [rate, runs] : rates_) {
    for (results::Run& run : runs) {
      run.handoff = around(0.0022);
      run.overtakings = 500;
    }
  }
  const auto [mean_overtaken, p99_overtaken] = predicted();
  EXPECT_NEAR(mean_overtaken, mean, 0.1 * mean);
  EXPECT_GT(p99_overtaken, 1.5 * p99);
}

TEST_F(CapacityPredictionTest, ARateThatIsKeptButNotPredictedSpeaksAgainstTheModel) {
  for (auto& [rate, runs] : rates_) {
    for (results::Run& run : runs) run.hold = around(0.003);
  }
  // At 200/s the lock is taken for 64 % of the time; 400/s are too many for the model.
  const auto& predictions = model("queue")->predictions;
  ASSERT_EQ(predictions.size(), 3U);
  EXPECT_EQ(predictions[2].at, "rate=400");
  EXPECT_TRUE(std::isinf(predictions[2].predicted));
  EXPECT_FALSE(predictions[2].error.has_value());
}

TEST_F(CapacityPredictionTest, TheQueueNeedsALockThatIsWaitedFor) {
  for (auto& [rate, runs] : rates_) {
    for (results::Run& run : runs) run.handoff.count = 3;
  }
  EXPECT_EQ(model("queue"), nullptr);
  for (auto& [rate, runs] : rates_) runs = {contended_};
  plan_.run.workload.keys = 4;
  EXPECT_NE(model("queue"), nullptr);
  plan_.run.workload.key_skew = 1;
  EXPECT_EQ(model("queue"), nullptr) << "a queue for each key is not what the model has";
  plan_.run.workload.key_skew = 0;
  contended_.audit.verdict = results::Verdict::unprotected;
  EXPECT_EQ(model("queue"), nullptr);
}

TEST_F(CapacityPredictionTest, ScalabilityIsCheckedAtTheLargestWhichItWasNotFittedTo) {
  capacity_.sweep.back().sections_per_second *= 2;  // must not move the fit
  const auto* usl = model("usl");
  ASSERT_NE(usl, nullptr);
  EXPECT_NEAR(usl->parameters.at("sigma"), 0.8, 1e-6);
  EXPECT_EQ(usl->parameters.at("fitted_to_clients"), 16);
  ASSERT_EQ(usl->predictions.size(), 1U);
  EXPECT_EQ(usl->predictions[0].at, "clients=32");
  ASSERT_TRUE(usl->predictions[0].error.has_value());
  EXPECT_NEAR(*usl->predictions[0].error, -0.5, 1e-6);
  EXPECT_FALSE(usl->predictions[0].extrapolated);
}

TEST_F(CapacityPredictionTest, WhatWasNotMeasuredIsMarked) {
  plan_.extrapolations = {{.clients = 2000, .rtt = 1ms}, {.clients = 12}, {.rtt = 1ms}};
  const auto* usl = model("usl");
  ASSERT_NE(usl, nullptr);
  ASSERT_EQ(usl->predictions.size(), 4U);
  const results::Prediction& far = usl->predictions[1];
  EXPECT_EQ(far.at, "clients=2000,rtt=1ms");
  EXPECT_TRUE(far.extrapolated);
  EXPECT_FALSE(far.measured.has_value());
  EXPECT_NEAR(far.predicted, 1 / 0.003, 1) << "2 ms, and one round trip for the handoff";
  EXPECT_FALSE(usl->predictions[2].extrapolated) << "between what was measured";
  const auto* queue = model("queue");
  ASSERT_NE(queue, nullptr);
  EXPECT_NEAR(queue->predictions.back().predicted, 1 / 0.003, 1e-6);
  EXPECT_TRUE(queue->predictions.back().extrapolated);
}

TEST(Extrapolation, IsReadAndWritten) {
  const auto both = parse_extrapolation("clients=2000,rtt=1ms");
  ASSERT_TRUE(both) << both.error();
  EXPECT_EQ(both->clients, 2000);
  EXPECT_EQ(both->rtt, Duration(1ms));
  EXPECT_EQ(both->text(), "clients=2000,rtt=1ms");
  EXPECT_EQ(parse_extrapolation("rtt=250us")->text(), "rtt=250us");
  for (const char* wrong : {"", "clients", "clients=", "clients=0", "clients=2.5", "rtt=5",
                            "rtt=-1ms", "keys=3", "clients=2,clients=3", "clients=2,"}) {
    EXPECT_FALSE(parse_extrapolation(wrong)) << wrong;
  }
  EXPECT_THAT(parse_extrapolation("keys=3").error(), HasSubstr("\"keys=3\""));
}

}  // namespace
}  // namespace lockbench::loadgen
