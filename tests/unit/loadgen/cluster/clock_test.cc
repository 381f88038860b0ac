#include "loadgen/cluster/clock.h"

#include <gtest/gtest.h>

#include <random>

namespace lockbench::loadgen::cluster {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kOrigin{1000s};

/// Another clock, by ours: ahead, and faster by a share.
struct Other {
  Duration ahead{};
  double drift = 0;

  Duration offset(TimePoint local) const {
    return ahead + Duration(static_cast<Duration::rep>(
                       drift * static_cast<double>((local - kOrigin).count())));
  }
  /// An exchange that takes so long each way.
  ClockSample exchange(TimePoint asked, Duration there, Duration back) const {
    const TimePoint at = asked + there;
    return sample_of(asked, at + offset(at), at + back);
  }
};

void expect_within_bound(const ClockModel& model, const Other& other, TimePoint at) {
  const auto estimate = model.at(at);
  EXPECT_LE(std::chrono::abs(estimate.offset - other.offset(at)), estimate.bound + 1us);
}

TEST(Clock, AnExchangeIsWrongByHalfItsRoundTripAtMost) {
  const Other other{.ahead = 5ms};
  const ClockSample all_one_way = other.exchange(kOrigin, 100us, 0us);
  EXPECT_EQ(all_one_way.bound, 50us);
  EXPECT_LE(std::chrono::abs(all_one_way.offset - 5ms), all_one_way.bound);
}

TEST(Clock, TheErrorOfWhoeverAnswersAddsUp) {
  EXPECT_EQ(sample_of(kOrigin, kOrigin + 5us, kOrigin + 10us, 7us).bound, 12us);
}

TEST(Clock, WithoutASampleNothingIsKnown) {
  const ClockModel model;
  EXPECT_GE(model.at(kOrigin).bound, 1h);
  EXPECT_FALSE(model.knows_drift());
}

TEST(Clock, OnesOwnIsExact) {
  EXPECT_EQ(ClockModel::own().at(kOrigin + 1h).bound, 0ns);
  EXPECT_EQ(ClockModel::own().at(kOrigin + 1h).offset, 0ns);
}

TEST(Clock, TheBestSampleOfABurstDecides) {
  const Other other{.ahead = -3ms};
  ClockModel model;
  model.add(other.exchange(kOrigin, 400us, 20us));
  model.add(other.exchange(kOrigin + 1ms, 3us, 2us));
  model.add(other.exchange(kOrigin + 2ms, 20us, 900us));
  const auto estimate = model.at(kOrigin + 1ms);
  EXPECT_LT(estimate.bound, 5us);
  expect_within_bound(model, other, kOrigin + 1ms);
}

TEST(Clock, TheDriftIsFoundAndTheBoundHolds) {
  std::mt19937 random(3);
  for (const double drift : {0.0, 40e-6, -200e-6}) {
    const Other other{.ahead = 1234567ns, .drift = drift};
    ClockModel model;
    TimePoint now = kOrigin;
    for (int burst = 0; burst < 300; ++burst, now += 500ms) {
      const auto delay = [&] { return Duration(2000 + random() % 300'000); };
      for (int i = 0; i < 4; ++i) model.add(other.exchange(now + i * 1ms, delay(), delay()));
      expect_within_bound(model, other, now + 10ms);
      expect_within_bound(model, other, now + 490ms);
    }
    EXPECT_TRUE(model.knows_drift());
    EXPECT_NEAR(model.drift(), drift, 5e-6);
    EXPECT_LT(model.at(now).bound, 100us);
  }
}

TEST(Clock, ABadSampleTakesNothingAway) {
  const Other other{.ahead = 1ms};
  ClockModel model;
  for (int i = 0; i < 5; ++i) model.add(other.exchange(kOrigin + i * 500ms, 5us, 5us));
  const TimePoint later = kOrigin + 4s;
  const Duration before = model.at(later).bound;
  model.add(other.exchange(later, 2ms, 2ms));
  EXPECT_TRUE(model.knows_drift());
  EXPECT_LE(model.at(later).bound, before);
}

TEST(Clock, TheBoundGrowsWithoutNewSamples) {
  const Other other{.ahead = 1ms};
  ClockModel model;
  model.add(other.exchange(kOrigin, 5us, 5us));
  model.add(other.exchange(kOrigin + 1s, 5us, 5us));
  EXPECT_GT(model.at(kOrigin + 1min).bound, 10 * model.at(kOrigin + 1s).bound);
}

}  // namespace
}  // namespace lockbench::loadgen::cluster
