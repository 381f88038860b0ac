#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "results/tables/observed.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

const Cell& cell_of(const Table& table, const std::string& key) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].key == key) return table.rows.front()[c];
  }
  throw std::out_of_range(key);
}

Table table_seen(const std::string& accuracy) {
  Result result = minimal_result();
  Observed& family = result.observed.emplace().emplace_back();
  family.family = "order";
  family.accuracy = accuracy;
  family.acquisitions = 12;
  family.expired_while_held = 1;
  family.held_now = 3;
  family.oldest_hold = 1.5;
  return observed_table(result);
}

TEST(ObservedTable, EachRowHasAColumnOfItsOwn) {
  std::set<std::string> keys;
  for (const Column& column : table_seen("exact").columns) {
    EXPECT_TRUE(keys.insert(column.key).second) << column.key;
  }
  for (const FamilyRow& row : kFamilyRows) {
    EXPECT_TRUE(std::ranges::any_of(keys, [&](const std::string& key) {
      return key.starts_with(row.name);
    })) << row.name;
    EXPECT_STRNE(row.help, "") << row.name;
  }
}

TEST(ObservedTable, CountsSayHowGoodTheyAre) {
  EXPECT_EQ(cell_of(table_seen("exact"), "acquisitions").text, "12");
  EXPECT_EQ(cell_of(table_seen("at_least"), "acquisitions").text, "≥12");
  EXPECT_EQ(cell_of(table_seen("sampled"), "acquisitions").text, "~12");
  EXPECT_EQ(cell_of(table_seen("sampled"), "releases").text, "0") << "there is nothing to bound";
  EXPECT_EQ(cell_of(table_seen("sampled"), "held_now").text, "3") << "as it was at the end";
  EXPECT_EQ(cell_of(table_seen("at_least"), "expired_while_held").tone, Tone::bad);
}

TEST(ObservedTable, WhatIsOfUseOnlyMeanwhileIsShownIfAskedFor) {
  const Table table = table_seen("exact");
  EXPECT_EQ(cell_of(table, "oldest_hold_seconds").text, "1.5 s");
  EXPECT_THROW(cell_of(shown(table), "oldest_hold_seconds"), std::out_of_range);
  EXPECT_THROW(cell_of(shown(table), "session_lost"), std::out_of_range) << "there is none";
}

}  // namespace
}  // namespace lockbench::results
