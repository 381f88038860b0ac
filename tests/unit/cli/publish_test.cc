#include "cli/console/publish.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "results/tables/outcomes.h"
#include "strategies/registry.h"
#include "tests/unit/results/samples.h"

namespace lockbench::cli {
namespace {

TEST(KnownFlaws, AreTheGravestOfEachStrategyAndWhatReplacesIt) {
  results::Result result = results::minimal_result();
  for (const Descriptor* strategy : all_strategies()) {
    result.runs.push_back(results::simple_run(std::string(strategy->name)));
  }
  const results::KnownFlaws flaws = known_flaws(result);
  for (const Descriptor* strategy : all_strategies()) {
    const auto flaw = flaws.find(strategy->name);
    ASSERT_NE(flaw, flaws.end()) << strategy->name;
    EXPECT_EQ(flaw->second.superseded_by, strategy->superseded_by);
    for (const KnownHazard& hazard : strategy->hazards) {
      const std::string_view outcome = to_string(hazard.outcome);
      if (!results::does_harm(outcome)) continue;
      const auto shown =
          std::find_if(strategy->hazards.begin(), strategy->hazards.end(),
                       [&](const KnownHazard& one) { return one.scenario == flaw->second.hazard; });
      EXPECT_GE(results::gravity(to_string(shown->outcome)), results::gravity(outcome))
          << strategy->name << " falls to " << hazard.scenario;
    }
  }
}

}  // namespace
}  // namespace lockbench::cli
