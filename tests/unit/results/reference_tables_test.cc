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
  const NamedTables tables =
      reference_tables({full_result(), other}, {{"redis-set-nx", "a-fault"}});
  EXPECT_THAT(tables.at("comparison"),
              AllOf(HasSubstr("| strategy |"), HasSubstr("| acquire p50 |"), HasSubstr("a-fault"),
                    HasSubstr("2 × Example CPU"), Not(HasSubstr("unknown"))));
  EXPECT_THAT(tables.at("hazards"), HasSubstr("late-release"));
  EXPECT_THAT(tables.at("renewal"), HasSubstr("batched"));
  EXPECT_THAT(tables.at("quorum"), AllOf(HasSubstr("redlock"), Not(HasSubstr("among"))));
  EXPECT_EQ(tables.size(), 4U);
}

TEST(ReferenceTables, DoNotCompareLocksThatNobodyContendsFor) {
  Result alone = minimal_result(), contended = alone;
  alone.workload["clients"] = std::int64_t{1};
  contended.workload["clients"] = std::int64_t{8};
  alone.runs = {simple_run("lonely")};
  contended.runs = {simple_run("wanted")};
  const NamedTables tables = reference_tables({alone, contended}, {});
  EXPECT_THAT(tables.at("comparison"), AllOf(HasSubstr("wanted"), Not(HasSubstr("lonely"))));
  EXPECT_THAT(tables.at("alone"), HasSubstr("lonely"));
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
