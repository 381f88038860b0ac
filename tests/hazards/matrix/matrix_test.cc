#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/hazards/support/fixtures.h"

namespace lockbench::hazards::test {
namespace {

/// Every strategy of lockbench in every play: what is seen is what is declared.
TEST(Matrix, IsAsDeclared) {
  std::vector<Cell> cells;
  for (const Descriptor* strategy : all_strategies()) {
    if (strategy->name.starts_with("test-")) continue;
    for (const Scenario* scenario : all_scenarios())
      cells.push_back(make_cell(*scenario, *strategy));
  }
  ASSERT_FALSE(cells.empty());
  int played = 0;
  play_all(server_pool(), cells, 6,
           [&](const Cell& cell) { played += cell.took > Duration::zero() ? 1 : 0; }, {});
  for (const Cell& cell : cells) {
    EXPECT_FALSE(cell.failed) << description_of(cell);
    EXPECT_TRUE(cell.played()) << "not played: " << description_of(cell);
    if (cell.played()) {
      EXPECT_TRUE(cell.agrees()) << description_of(cell);
    }
  }
  EXPECT_GT(played, 0);
}

}  // namespace
}  // namespace lockbench::hazards::test
