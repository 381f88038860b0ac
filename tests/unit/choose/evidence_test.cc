#include "choose/evidence.h"

#include "choose/answer_text.h"
#include "tests/unit/choose/fixtures.h"

namespace lockbench::choose {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST(Basis, IsTheUsersMachineWhereItWasMeasured) {
  const auto mine = under(1, {measured("a", 5)});
  const auto reference = under(1, {measured("a", 1), measured("b", 1)});
  const Evidence both({{"mine", mine}}, {{"reference", reference}});
  EXPECT_THAT(both.runs_of("a", {}).name, HasSubstr("mine: 1 client"));
  EXPECT_THAT(both.runs_of("b", {}).runs, IsEmpty());
  const Evidence none({{"plays", results::minimal_result()}}, {{"reference", reference}});
  EXPECT_THAT(none.runs_of("b", {}).name, HasSubstr("reference"));
}

TEST(Basis, IsTheLoadNearestToWhatWasAsked) {
  const Evidence evidence({}, {{"one", under(1, {measured("a", 1)})},
                               {"eight", under(8, {measured("a", 1)})},
                               {"many", under(500, {measured("a", 1)})}});
  const auto basis = [&](const Requirements& requirements) {
    return evidence.basis_for(requirements).name.substr(0, 3);
  };
  EXPECT_EQ(basis({}), "one");
  EXPECT_EQ(basis({.clients = 5}), "eig");
  EXPECT_EQ(basis({.clients = 200}), "man");
  // Little's law: ten are there at once.
  EXPECT_EQ(basis({.work_p50 = std::chrono::seconds(1), .rate = 10}), "eig");
}

TEST(Basis, AKeyForEachClientIsNoContention) {
  auto result = under(8, {});
  result.workload["keys"] = std::string("per-client");
  EXPECT_FALSE(measured_load(result).contended());
  result.workload["keys"] = std::int64_t{2};
  EXPECT_EQ(measured_load(result).clients, 4);
}

TEST(Basis, DoesNotMixMachinesNorLoads) {
  auto twin = under(1, {measured("b", 2)}), other = under(1, {measured("c", 1)});
  other.environment.cpu = "another";
  const Evidence evidence({{"m1.json", under(1, {measured("a", 1)})},
                           {"twin.json", twin},
                           {"m2.json", under(500, {measured("a", 3)})},
                           {"m3.json", other}},
                          {});
  const auto basis = evidence.basis_for({});
  EXPECT_THAT(basis.name, HasSubstr("m1.json, twin.json: 1 client"));
  EXPECT_THAT(basis.left_out, ElementsAre(AllOf(HasSubstr("m3.json"), HasSubstr("another")),
                                          AllOf(HasSubstr("m2.json"), HasSubstr("1 and 500"))));
  EXPECT_THAT(evidence.runs_of("a", {}).runs, SizeIs(1));
  EXPECT_THAT(evidence.runs_of("b", {}).runs, SizeIs(1));
  EXPECT_THAT(evidence.runs_of("c", {}).runs, IsEmpty());
}

TEST(Basis, IsNotWhatWasMeasuredInVain) {
  auto broken = under(1, {measured("a", 1)});
  broken.runs[0].generator.valid = false;
  const Evidence evidence({{"broken", broken}, {"eight", under(8, {measured("a", 1)})}}, {});
  EXPECT_THAT(evidence.basis_for({}).name, HasSubstr("eight"));
}

TEST(Rank, InvalidRunsCountOnlyWhereThereAreNoOthersAndThenAsUnmeasured) {
  World world;
  for (const char* name : {"half", "never", "valid"}) world.add(made_up(name));
  world.file() = under(
      1, {measured("half", 1), measured("half", 5), measured("never", 1), measured("valid", 3)});
  world.file().runs[0].generator.valid = false;
  world.file().runs[2].generator.valid = false;
  const Answer answer = world.choose({.clients = 1});
  ASSERT_THAT(names(answer.ranked), ElementsAre("valid", "half", "never"));
  EXPECT_EQ(answer.ranked[1].value, 5);
  EXPECT_FALSE(answer.ranked[1].doubtful);
  EXPECT_TRUE(answer.ranked[2].doubtful);
  EXPECT_THAT(to_text(answer, {}), HasSubstr("1 s (invalid run)"));
}

TEST(Yardstick, SaysWhatWasReallyMeasured) {
  World world;
  world.add(made_up("x"));
  const auto why = [&](std::int64_t clients, const Requirements& requirements) {
    world.file() = under(clients, {measured("x", 1)});
    return world.choose(requirements).yardstick.why;
  };
  EXPECT_EQ(why(1, {.fair = false}), "the cost of an uncontended lock");
  EXPECT_THAT(why(8, {.fair = false}),
              AllOf(HasSubstr("8 contending clients"), Not(HasSubstr("uncontended"))));
  EXPECT_THAT(why(8, {.clients = 9}), HasSubstr("any of 8 contending clients"));
  EXPECT_THAT(why(1, {.clients = 9}), HasSubstr("no clients contended"));
  EXPECT_THAT(why(1, {.rate = 9}), HasSubstr("no run has clients that arrive at a rate"));
  world.file() = under(1, {measured("x", 1)});
  world.file().workload["rate"] = 9.0;
  EXPECT_EQ(world.choose({.rate = 9}).yardstick.why, "the wait of an arriving request");
}

}  // namespace
}  // namespace lockbench::choose
