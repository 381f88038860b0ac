#include <gmock/gmock.h>

#include "results/report/report.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results::report {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kAlone = "fill=\"#0072b2\"", kPale = "fill-opacity";

Hazard played(std::vector<HazardEvent> timeline) {
  return {.scenario = "pause",
          .strategy = "lock",
          .expected = "lost-update",
          .observed = "lost-update",
          .timeline = std::move(timeline)};
}

std::size_t drawn(const std::string& picture, std::string_view what) {
  std::size_t times = 0;
  for (auto at = picture.find(what); at != std::string::npos; at = picture.find(what, at + 1)) {
    ++times;
  }
  return times;
}

TEST(Timeline, DrawsWhoTreatsTheLockAsItsOwn) {
  const std::string picture = timeline_svg(played({{0, "holder", "is granted the lock"},
                                                   {1, "fault", "holder is stopped"},
                                                   {2, "second", "is granted the lock"},
                                                   {3, "fault", "holder is resumed"},
                                                   {4, "second", "releases the lock"},
                                                   {5, "fault", "holder is killed"}}));
  EXPECT_EQ(drawn(picture, kAlone), 3U) << "the holder's, before the second's and after";
  EXPECT_EQ(drawn(picture, kPale), 2U);
  EXPECT_EQ(drawn(picture, "fill=\"#fde7e4\""), 2U) << "both hold it in two rows";
  EXPECT_THAT(picture, HasSubstr("2.000 s"));
}

TEST(Timeline, TakesNoTextForMarkupAndNoPlayForAnotherSize) {
  const std::string picture =
      timeline_svg(played(std::vector<HazardEvent>(5000, {1, "<a>", "</svg><script>"})));
  EXPECT_THAT(picture, Not(HasSubstr("<script")));
  EXPECT_EQ(drawn(picture, "</svg>"), 1U);
  EXPECT_LT(picture.size(), 100'000U);
  EXPECT_THAT(timeline_svg(played({})), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace lockbench::results::report
