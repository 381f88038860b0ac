#include "loadgen/run/duration_distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <utility>
#include <vector>

namespace lockbench::loadgen {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Made = DurationDistribution;

TEST(DurationDistribution, IsWrittenAsItIsRead) {
  for (const auto& [text, made] : std::initializer_list<std::pair<const char*, Made>>{
           {"0s", {}},
           {"2ms", Made::constant(milliseconds(2))},
           {"1500us", Made::constant(microseconds(1500))},
           {"exp(1h)", Made::exponential(hours(1))},
           {"uniform(0s,3ms)", Made::uniform(Duration::zero(), milliseconds(3))},
           {"lognormal(2ms,20ms)", Made::lognormal(milliseconds(2), milliseconds(20))}}) {
    const auto parsed = Made::parse(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, made) << text;
    EXPECT_EQ(parsed->to_string(), text);
  }
  EXPECT_EQ(Made::parse(" uniform( 0 , 3ms ) "), Made::parse("uniform(0s,3ms)"));
}

TEST(DurationDistribution, OnlyWhatCannotBeLongerIsZero) {
  EXPECT_TRUE(Made().is_zero());
  EXPECT_TRUE(Made::exponential(Duration::zero()).is_zero());
  EXPECT_TRUE(Made::uniform(Duration::zero(), Duration::zero()).is_zero());
  EXPECT_FALSE(Made::uniform(Duration::zero(), nanoseconds(1)).is_zero());
  EXPECT_FALSE(Made::exponential(nanoseconds(1)).is_zero());
}

TEST(DurationDistribution, RejectsEverythingElse) {
  for (const char* text :
       {"", "2", "-2ms", "exp", "exp()", "exp(2ms", "exp(2ms,3ms)", "expo(2ms)", "uniform(1ms)",
        "uniform(3ms,1ms)", "uniform(1ms,2ms,3ms)", "normal(1ms)", "lognormal(0,1ms)",
        "lognormal(2ms,1ms)", "exp(2h)", "2h", "uniform(0,2h)"}) {
    const auto parsed = DurationDistribution::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_FALSE(parsed.error().empty()) << text;
  }
}

TEST(DurationDistribution, ExponentialDrawsHaveItsMeanAndShape) {
  Random random(3);
  const auto exponential = DurationDistribution::exponential(milliseconds(2));
  EXPECT_EQ(exponential.mean(), milliseconds(2));
  constexpr int kDraws = 100'000;
  double sum = 0;
  int above_mean = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Duration drawn = exponential.draw(random);
    ASSERT_GE(drawn, Duration::zero());
    sum += static_cast<double>(drawn.count());
    if (drawn > milliseconds(2)) ++above_mean;
  }
  EXPECT_NEAR(sum / kDraws, 2e6, 2e6 * 0.02);
  EXPECT_NEAR(above_mean / double{kDraws}, std::exp(-1.0), 0.01);
  const auto long_ones = DurationDistribution::exponential(hours(1));
  Duration longest{};
  for (int i = 0; i < 1000; ++i) longest = std::max(longest, long_ones.draw(random));
  EXPECT_EQ(longest, hours(1)) << "they are cut there";
}

TEST(DurationDistribution, UniformDrawsFillTheirRangeEvenly) {
  Random random(5);
  const auto uniform = DurationDistribution::uniform(nanoseconds(10), nanoseconds(13));
  EXPECT_EQ(DurationDistribution::uniform(microseconds(1), microseconds(3)).mean(),
            microseconds(2));
  std::array<int, 4> seen{};
  for (int i = 0; i < 40'000; ++i) {
    const auto drawn = uniform.draw(random).count();
    ASSERT_GE(drawn, 10);
    ASSERT_LE(drawn, 13);
    ++seen[static_cast<std::size_t>(drawn - 10)];
  }
  for (const int count : seen) EXPECT_NEAR(count, 10'000, 400);
}

TEST(DurationDistribution, LognormalDrawsHaveTheMedianTheP99AndTheMean) {
  Random random(6);
  const auto lognormal = DurationDistribution::lognormal(milliseconds(2), milliseconds(20));
  constexpr int kDraws = 100'000;
  double sum = 0;
  int below_median = 0, below_p99 = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Duration drawn = lognormal.draw(random);
    sum += static_cast<double>(drawn.count());
    below_median += drawn < milliseconds(2);
    below_p99 += drawn < milliseconds(20);
  }
  EXPECT_NEAR(below_median / double{kDraws}, 0.5, 0.01);
  EXPECT_NEAR(below_p99 / double{kDraws}, 0.99, 0.002);
  EXPECT_NEAR(sum / kDraws, static_cast<double>(lognormal.mean().count()), 0.03e6);
  const auto wild = DurationDistribution::lognormal(nanoseconds(1), hours(1));
  EXPECT_EQ(wild.mean(), hours(1)) << "it is cut there";
}

tl::expected<DurationDistribution, std::string> quantiles(const std::string& text) {
  std::istringstream file(text);
  return DurationDistribution::read_quantiles(file, "hold.txt");
}

TEST(DurationDistribution, FollowsMeasuredQuantiles) {
  const auto measured = quantiles("# share time\n0.5 2ms\n0.9 10ms\n\n1 50ms\n");
  ASSERT_TRUE(measured) << measured.error();
  EXPECT_EQ(measured->to_string(), "quantiles:hold.txt");
  // Half are 2 ms, 40 % lie between 2 and 10 ms, the rest between 10 and 50 ms.
  EXPECT_NEAR(static_cast<double>(measured->mean().count()), 6.4e6, 1);
  Random random(7);
  constexpr int kDraws = 20'000;
  std::vector<Duration> draws(kDraws);
  for (Duration& draw : draws) draw = measured->draw(random);
  const auto [shortest, longest] = std::minmax_element(draws.begin(), draws.end());
  EXPECT_EQ(*shortest, milliseconds(2));
  EXPECT_LE(*longest, milliseconds(50));
  const std::pair<double, Duration> expected[] = {{0.5, milliseconds(2)},
                                                  {0.7, milliseconds(6)},
                                                  {0.9, milliseconds(10)},
                                                  {0.95, milliseconds(30)}};
  for (const auto& [share, value] : expected) {
    const auto within = std::count_if(draws.begin(), draws.end(),
                                      [most = value](Duration draw) { return draw <= most; });
    const double deviation = std::sqrt(kDraws * share * (1 - share));
    EXPECT_NEAR(static_cast<double>(within), kDraws * share, 5 * deviation) << share;
  }
}

TEST(DurationDistribution, QuantilesThatMakeNoSenseAreNamedByTheirLine) {
  const std::pair<const char*, const char*> cases[] = {{"", "no quantiles"},
                                                       {"0.5", "line 1"},
                                                       {"2 3ms", "line 1"},
                                                       {"0.5 2ms\n0.4 3ms", "line 2"},
                                                       {"0.5 2ms\n0.9 1ms", "line 2"},
                                                       {"0.5 2h", "line 1"},
                                                       {"x 2ms", "line 1"},
                                                       {"nan 2ms", "line 1"}};
  for (const auto& [text, part] : cases) {
    const auto read = quantiles(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().find(part), std::string::npos) << read.error();
    EXPECT_TRUE(read.error().starts_with("hold.txt: ")) << read.error();
  }
  EXPECT_FALSE(DurationDistribution::parse("quantiles:/no/such/file"));
}

}  // namespace
}  // namespace lockbench::loadgen
