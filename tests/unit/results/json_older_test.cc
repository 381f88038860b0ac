#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "results/file/fields.h"
#include "results/file/json.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using nlohmann::json;

Result with_quorum() {
  Result result = full_result();
  result.experiment = Experiment{.points = std::vector<QuorumPoint>{sample_quorum_point()}};
  return result;
}

const QuorumPoint& point_of(const Result& result) {
  return std::get<std::vector<QuorumPoint>>(result.experiment->points).front();
}

TEST(JsonOfOlderVersions, DoesNotSayWhetherALockFailed) {
  json document = json::parse(to_json(with_quorum()));
  ASSERT_EQ(document.at("capacity").at(0).erase("violated"), 1U);
  ASSERT_EQ(document.at("experiment").at("points").at(0).erase("violated"), 1U);
  const auto read = from_json(document.dump());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->capacity->front().violated, std::nullopt);
  EXPECT_EQ(point_of(*read).violated, std::nullopt);
  EXPECT_EQ(json::parse(to_json(*read)), document) << "nothing is made up";
}

TEST(JsonOfOlderVersions, HasNoIntervals) {
  for (const bool quorum : {true, false}) {
    Result result = minimal_result();
    result.experiment = quorum ? *with_quorum().experiment : sample_experiment();
    json document = json::parse(to_json(result));
    json& point = document.at("experiment").at("points").at(0);
    for (const char* added : {"overhead_interval", "node_cost_seconds", "node_cost_interval"}) {
      point.erase(added);
    }
    EXPECT_FALSE(from_json(document.dump())) << "files of version 2 have them";
    document["schema"] = kSchemaBefore;
    const auto read = from_json(document.dump());
    ASSERT_TRUE(read) << read.error();
    if (quorum) {
      EXPECT_EQ(point_of(*read).node_cost_seconds, std::nullopt);
    } else {
      const auto& points = std::get<std::vector<RenewalPoint>>(read->experiment->points);
      EXPECT_FALSE(points.front().overhead_interval);
    }
  }
}

}  // namespace
}  // namespace lockbench::results
