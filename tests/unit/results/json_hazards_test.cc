#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "results/file/json.h"
#include "tests/unit/results/samples.h"

// What `lockbench hazards` puts into a file beside its cells.

namespace lockbench::results {
namespace {

using nlohmann::json;

TEST(Json, BeliefGapsAreReadBackOrLeftOut) {
  Result result = full_result();
  result.belief_gaps[0].seconds.push_back(std::numeric_limits<double>::infinity());
  const Result read = read_back(result);
  ASSERT_EQ(read.belief_gaps.size(), 1U);
  EXPECT_EQ(read.belief_gaps[0].strategy, "redis-watchdog");
  EXPECT_EQ(read.belief_gaps[0].seconds.at(0), -0.25);
  EXPECT_TRUE(std::isnan(read.belief_gaps[0].seconds.at(3))) << "it went on believing";
  EXPECT_EQ(to_json(read), to_json(result));
  result.belief_gaps.clear();
  EXPECT_FALSE(json::parse(to_json(result)).contains("belief_gaps"));
  EXPECT_TRUE(read_back(result).belief_gaps.empty());
}

}  // namespace
}  // namespace lockbench::results
