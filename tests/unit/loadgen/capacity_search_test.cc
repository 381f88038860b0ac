#include "loadgen/experiments/capacity_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace lockbench::loadgen {
namespace {

/// What was tried, in its order.
struct Trial {
  std::string purpose;
  double rate = 0;
};

/// A lock that keeps the objective up to a rate, without noise.
class Search {
 public:
  explicit Search(double capacity) : capacity_(capacity) {}

  CapacityInterval run(const CapacitySearchPlan& plan) {
    trials_.clear();
    CapacitySearch search(plan, [this](std::string_view purpose, double rate) {
      trials_.push_back({std::string(purpose), rate});
      return std::optional(lie_at_ == trials_.size() ? rate > capacity_ : rate <= capacity_);
    });
    return search.run();
  }
  const std::vector<Trial>& trials() const { return trials_; }
  /// The trial of that number, from 1, comes out wrong.
  void lie_at(std::size_t number) { lie_at_ = number; }

 private:
  const double capacity_;
  std::size_t lie_at_ = 0;
  std::vector<Trial> trials_;
};

class CapacityFrom : public testing::TestWithParam<double> {};

TEST_P(CapacityFrom, EncloseItAndConfirmBothEnds) {
  constexpr double kCapacity = 437;
  Search search(kCapacity);
  const CapacityInterval found = search.run({.first_rate = GetParam(), .precision = 0.05});
  EXPECT_TRUE(found.confirmed);
  EXPECT_LE(found.held, kCapacity);
  EXPECT_GT(found.failed, kCapacity);
  EXPECT_LE(found.failed / found.held, 1.05);
  const auto confirming = [&](const char* purpose, double rate) {
    return std::count_if(search.trials().begin(), search.trials().end(), [&](const Trial& trial) {
      return trial.purpose == purpose && trial.rate == rate;
    });
  };
  EXPECT_EQ(confirming("confirm-at", found.held), 3);
  EXPECT_EQ(confirming("confirm-above", found.failed), 3);
}

INSTANTIATE_TEST_SUITE_P(Rates, CapacityFrom, testing::Values(5, 100, 437, 438, 9000));

TEST(CapacitySearch, ConfirmsInAnOrderThatTheSeedDecides) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Search search(437);
    search.run({.seed = seed});
    std::string order;
    for (const Trial& trial : search.trials()) {
      if (trial.purpose.starts_with("confirm")) order += trial.purpose == "confirm-at" ? 'a' : 'b';
    }
    EXPECT_EQ(order.size(), 6U);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 5U);
}

TEST(CapacitySearch, WhereNothingHoldsSaysSoAndEnds) {
  Search search(0);
  const CapacityInterval found = search.run({.first_rate = 100, .lowest_rate = 10});
  EXPECT_EQ(found.held, 0);
  EXPECT_GE(found.failed, 10);
  EXPECT_LE(found.failed, 20);
  EXPECT_FALSE(found.confirmed);
}

TEST(CapacitySearch, WhereNothingFailsSaysSoAndEnds) {
  Search search(1e9);
  const CapacityInterval found = search.run({.first_rate = 100, .highest_rate = 10'000});
  EXPECT_GT(found.held, 5000);
  EXPECT_TRUE(std::isnan(found.failed));
  EXPECT_FALSE(found.confirmed);
}

TEST(CapacitySearch, OneWrongRunAnywhereDoesNotMisleadIt) {
  Search honest(437);
  honest.run({});
  for (std::size_t lie = 1; lie <= honest.trials().size(); ++lie) {
    Search search(437);
    search.lie_at(lie);
    const CapacityInterval found = search.run({.most_steps = 60});
    EXPECT_TRUE(found.confirmed) << "trial " << lie;
    EXPECT_LE(found.held, 437) << "trial " << lie;
    EXPECT_GT(found.failed, 437) << "trial " << lie;
  }
}

TEST(CapacitySearch, EndsWhateverItIsTold) {
  std::mt19937_64 coin(7);
  int steps = 0;
  CapacitySearch search({.most_steps = 25}, [&](std::string_view, double) {
    ++steps;
    return std::optional(coin() % 2 == 0);
  });
  search.run();
  EXPECT_LE(steps, 25);
}

TEST(CapacitySearch, AStopKeepsWhatIsKnown) {
  int steps = 0;
  CapacitySearch search({.first_rate = 100}, [&](std::string_view, double rate) {
    return ++steps > 3 ? std::nullopt : std::optional(rate < 300);
  });
  const CapacityInterval found = search.run();
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(found.held, 200);
  EXPECT_EQ(found.failed, 400);
  EXPECT_FALSE(found.confirmed);
}

/// A fair lock with one key: arrivals are Poisson, each keeps it for the same time (M/D/1). The
/// share of waits that are longer than the bound, by Lindley's recursion.
double share_above(double bound, double rate, double service, int sections,
                   std::mt19937_64& random) {
  std::exponential_distribution<double> gap(rate);
  double wait = 0;
  int above = 0;
  for (int i = 0; i < sections; ++i) {
    above += wait > bound ? 1 : 0;
    wait = std::max(0.0, wait + service - gap(random));
  }
  return static_cast<double>(above) / sections;
}

constexpr double kService = 0.002, kBound = 0.02;  // acquire.p99 < 20 ms

/// Where one in a hundred waits longer, by a long simulation.
double true_capacity() {
  double low = 100, high = 1 / kService;
  for (int i = 0; i < 12; ++i) {
    std::mt19937_64 random(11);
    const double middle = (low + high) / 2;
    (share_above(kBound, middle, kService, 400'000, random) < 0.01 ? low : high) = middle;
  }
  return (low + high) / 2;
}

TEST(CapacitySearch, FindsTheCapacityOfASimulatedLockInShortNoisyRuns) {
  const double truth = true_capacity();
  EXPECT_NEAR(truth, 410, 25) << "0.8 of what one key can grant";
  constexpr int kSearches = 60;
  int near = 0, confirmed = 0;
  for (int i = 0; i < kSearches; ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(i) + 100);
    CapacitySearch search(
        {.first_rate = 110, .most_steps = 26, .seed = static_cast<std::uint64_t>(i)},
        [&](std::string_view, double rate) {
          const int sections = static_cast<int>(3 * rate);  // three seconds
          return std::optional(share_above(kBound, rate, kService, sections, random) < 0.01);
        });
    const CapacityInterval found = search.run();
    confirmed += found.confirmed ? 1 : 0;
    near += found.held < 1.08 * truth && found.failed > 0.92 * truth ? 1 : 0;
  }
  EXPECT_GE(near, 0.9 * kSearches);
  EXPECT_GE(confirmed, 0.8 * kSearches);
}

}  // namespace
}  // namespace lockbench::loadgen
