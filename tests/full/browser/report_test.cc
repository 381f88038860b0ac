#include <fmt/format.h>
#include <gmock/gmock.h>

#include <stdexcept>

#include "results/file/json.h"
#include "tests/folders.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/output_of.h"
#include "tests/unit/results/samples.h"

namespace lockbench::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHostile =
    "\"><img src=x onerror=hacked=1><script>hacked=1</script></script><!--{{nonce}}${hacked=1}'`";

/// The facts that browse.py finds on the page.
Json browse(const std::string& page, const std::string& scheme = "light", int width = 1200) {
  const std::string script = std::string(LOCKBENCH_SOURCE_DIR) + "/tests/full/browser/browse.py";
  const std::string command =
      fmt::format("/usr/bin/python3 {} {} {} {} 2>&1", script, page, scheme, width);
  const std::string said = output_of(command).text;
  if (!Json::accept(said)) throw std::runtime_error("browse.py: " + said);
  return Json::parse(said);
}

/// Results of every kind; if `text` is given, all their texts are `text`.
std::vector<results::Result> samples(const std::string& text = "") {
  results::Result result = text.empty() ? results::full_result() : results::result_of_texts(text);
  for (int i = 0; i < 3; ++i) {
    results::Run run = results::full_run();
    run.strategy = fmt::format("strategy-{}", i) + text;
    run.faults = {{"store-kill" + text, 1.2, 1.6, 0.5, 0.1}};
    if (!text.empty()) run.errors = run.generator.reasons = {text};
    for (int t = 3; t < 30; ++t) {
      run.series.push_back({.t = static_cast<double>(t), .sections = 1000, .acquire_p99 = 0.001});
    }
    result.runs.push_back(run);
  }
  results::Result capacity = result;
  capacity.runs.clear();
  capacity.hazards.reset();
  capacity.observed.reset();
  return {result, capacity};
}

struct Report {
  Scratch scratch;
  std::string page = (scratch / "report.html").string();

  Outcome make(const std::vector<results::Result>& results) const {
    std::vector<std::string> arguments{"report", "--out", page};
    for (std::size_t i = 0; i < results.size(); ++i) {
      arguments.push_back(scratch.write(fmt::format("r{}.json", i), results::to_json(results[i])));
    }
    return lockbench(scratch, arguments);
  }
};

void expect_all_drawn(const Json& seen) {
  EXPECT_GE(seen.at("canvases").size(), 3U);
  for (const Json& canvas : seen.at("canvases")) {
    EXPECT_GT(canvas.at("colored"), 20) << canvas;
    EXPECT_EQ(canvas.at("role"), "img");
    EXPECT_NE(canvas.at("label"), nullptr);
  }
}

TEST(Report, IsDrawnInABrowserWithoutAnErrorAndWithoutANetwork) {
  const Report report;
  const Outcome made = report.make(samples());
  ASSERT_EQ(made.code, 0) << made.err;
  const Json seen = browse(report.page);
  expect_all_drawn(seen);
  EXPECT_THAT(seen.at("console").get<std::vector<std::string>>(), IsEmpty());
  EXPECT_THAT(seen.at("requests").get<std::vector<std::string>>(),
              ElementsAre(EndsWith("/report.html")));
  EXPECT_EQ(seen.at("title"), "lockbench: 2 results");
  EXPECT_EQ(seen.at("unnamed"), 0);
  EXPECT_THAT(seen.at("text").get<std::string>(), HasSubstr("violated exclusion"));
}

TEST(Report, IsReadWithTheKeyboardAndWithoutScripts) {
  const Report report;
  ASSERT_EQ(report.make(samples()).code, 0);
  const Json seen = browse(report.page);
  EXPECT_EQ(seen.at("unfolded").at("before"), false) << "something was unfolded from the start";
  EXPECT_THAT(seen.at("unfolded").at("told").get<std::string>(), HasSubstr("asks for the lock"));
  EXPECT_EQ(seen.at("clicked").at("changed"), true) << "a click on a name hides its line";
  EXPECT_THAT(seen.at("without_scripts").get<std::string>(),
              AllOf(HasSubstr("violated exclusion"), HasSubstr("The charts need JavaScript")));
}

TEST(Report, HostileTextsAreShownAndNotObeyed) {
  const Report report;
  const Outcome made = report.make(samples(kHostile));
  ASSERT_EQ(made.code, 0) << made.err;
  const Report tame;
  ASSERT_EQ(tame.make(samples()).code, 0);
  const Json seen = browse(report.page), expected = browse(tame.page);
  EXPECT_EQ(seen.at("hacked"), nullptr);
  EXPECT_EQ(seen.at("images"), 0);
  EXPECT_EQ(seen.at("frames"), 0);
  EXPECT_EQ(seen.at("scripts"), expected.at("scripts"));
  EXPECT_THAT(seen.at("console").get<std::vector<std::string>>(), IsEmpty());
  EXPECT_EQ(seen.at("requests").size(), 1U);
  EXPECT_THAT(seen.at("text").get<std::string>(), HasSubstr("<script>hacked=1</script>"));
  EXPECT_THAT(seen.at("unfolded").at("told").get<std::string>(), HasSubstr("onerror=hacked=1"));
}

TEST(Report, FollowsTheReadersColorsAndFitsAPhone) {
  const Report report;
  ASSERT_EQ(report.make(samples()).code, 0);
  const Json light = browse(report.page, "light", 1200), dark = browse(report.page, "dark", 390);
  EXPECT_EQ(light.at("background"), "rgb(255, 255, 255)");
  EXPECT_NE(dark.at("background"), light.at("background"));
  EXPECT_NE(dark.at("ink"), light.at("ink"));
  expect_all_drawn(dark);
  // Wide tables scroll, but the page does not.
  EXPECT_EQ(dark.at("inner"), 390);
  EXPECT_LE(dark.at("width"), 390);
  for (const Json& canvas : dark.at("canvases")) EXPECT_LE(canvas.at("width"), 390);
}

}  // namespace
}  // namespace lockbench::test
