#include "results/tables/reference_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const NamedTables two_tables{{"one", "| 1 |\n"}, {"two", "| 2 |\n"}};

TEST(WithTables, ReplacesWhatStandsBetweenTheMarks) {
  const std::string page =
      "a\n<!-- reference: two -->old\nold<!-- end -->\nb <!-- reference: one --><!-- end -->c";
  const auto drawn = with_tables(page, two_tables);
  ASSERT_TRUE(drawn) << drawn.error();
  EXPECT_EQ(*drawn,
            "a\n<!-- reference: two -->\n\n| 2 |\n\n<!-- end -->\nb <!-- reference: one -->\n\n| 1 "
            "|\n\n<!-- end -->c");
  EXPECT_EQ(with_tables(*drawn, two_tables), drawn) << "drawn twice is drawn once";
}

TEST(WithTables, LeavesAPageWithoutMarksAlone) {
  EXPECT_EQ(with_tables("a | b\n", two_tables).value(), "a | b\n");
  EXPECT_EQ(with_tables("", two_tables).value(), "");
}

TEST(WithTables, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(with_tables("a\n<!-- reference: three --><!-- end -->", two_tables).error(),
              AllOf(HasSubstr("line 2"), HasSubstr("\"three\""), HasSubstr("one, two")));
  EXPECT_THAT(with_tables("<!-- reference: one -->", two_tables).error(),
              HasSubstr("no <!-- end -->"));
  EXPECT_THAT(with_tables("<!-- reference: one", two_tables).error(), HasSubstr("line 1"));
}

TEST(ReferenceTables, HaveOneForEachKindOfResult) {
  Result other = minimal_result();
  QuorumPoint alone = sample_quorum_point(), among_others = alone;
  alone.clients = 1;
  among_others.strategy = "redlock-among-others";
  other.experiment = {.points = std::vector{alone, among_others}};
  const NamedTables tables = reference_tables({full_result(), other}, {});
  EXPECT_THAT(tables.at("hazards"), HasSubstr("late-release"));
  EXPECT_THAT(tables.at("renewal"), HasSubstr("batched"));
  EXPECT_THAT(tables.at("quorum"), AllOf(HasSubstr("redlock"), Not(HasSubstr("among"))));
  EXPECT_EQ(tables.size(), 5U);
}

TEST(ReferenceTables, TellLoadsWithANetworkFromThoseWithout) {
  Result near = minimal_result(), far = near;
  near.runs = {simple_run("close")};
  near.runs[0].load = Load{.name = "saturated", .clients = 8, .hold_seconds = 0.001};
  far.runs = {simple_run("remote")};
  far.runs[0].load =
      Load{.name = "saturated", .clients = 8, .hold_seconds = 0.001, .rtt_seconds = 0.001};
  far.workload["rtt"] = 0.001;
  const NamedTables tables = reference_tables({far, near}, {});
  EXPECT_THAT(tables.at("saturated"), AllOf(HasSubstr("| close |"), Not(HasSubstr("remote"))));
  EXPECT_THAT(tables.at("saturated-far"), HasSubstr("| remote |"));
  EXPECT_THAT(tables.at("conclusions"), AllOf(HasSubstr("- Next"), Not(HasSubstr("remote"))));
}

TEST(ReferenceTables, SayWhatAQuorumCosts) {
  QuorumPoint one{.strategy = "redlock", .acquire = sample_distribution(), .granted_share = 1};
  QuorumPoint five = one, seven_struck = one;
  five.nodes = 5;
  five.commands_per_section = 8;
  seven_struck.nodes = 7;
  seven_struck.down = 3;
  Result result = minimal_result();
  result.experiment = {.points = std::vector{one, five, seven_struck}};
  const NamedTables tables = reference_tables({result}, {});
  EXPECT_THAT(tables.at("quorum"),
              AllOf(HasSubstr("\n- each further node costs redlock"),
                    HasSubstr("2 commands a section"), Not(HasSubstr("| 7 |"))));
}

}  // namespace
}  // namespace lockbench::results
