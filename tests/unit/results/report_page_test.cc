#include <fmt/format.h>
#include <gmock/gmock.h>

#include "results/report/report.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile =
    "</script><script>alert(1)</script><img src=x onerror=a()><!--\"'`{{nonce}}${1} &amp; \xff\x1b";

std::string page_of(const Result& result) {
  const Source source{.file = "runs/a.json", .result = result, .flaws = {}};
  return to_page(std::span(&source, 1), "n0nce");
}

std::size_t times(std::string_view page, std::string_view text) {
  std::size_t count = 0;
  for (auto at = page.find(text); at != std::string_view::npos; at = page.find(text, at + 1)) {
    ++count;
  }
  return count;
}

/// Without what every page has: scripts and style.
std::string body_of(const std::string& page) {
  const auto from = page.find("<main"), until = page.find("</main>");
  return page.substr(from, until - from);
}

/// The same with one kind of figures each, since a page shows only the first kind in full.
std::vector<Source> sources_of(const Result& result) {
  Result hazards = result, watch = result, experiment = result, capacity = result;
  for (Run& run : experiment.runs) run.load.held_locks = 10;
  for (Result* other : {&hazards, &watch, &capacity}) other->runs.clear();
  for (Result* other : {&watch, &capacity}) other->hazards.reset();
  capacity.observed.reset();
  std::vector<Source> sources;
  for (const Result& one : {result, hazards, experiment, watch, capacity}) {
    sources.push_back({.file = one.id, .result = one, .flaws = {}});
  }
  return sources;
}

TEST(Page, NothingInAFileBecomesMarkup) {
  const std::string page = to_page(sources_of(result_of_texts(kHostile)), "n0nce");
  const std::string tame = to_page(sources_of(result_of_texts("tame")), "n0nce");
  for (const char* tag : {"<script", "</script", "<img", "<!--", "<style", "<a ", "<h1", "\x1b"}) {
    EXPECT_EQ(times(page, tag), times(tame, tag)) << tag;
  }
  EXPECT_EQ(times(page, "n0nce"), times(tame, "n0nce")) << "data cannot ask for the nonce";
  EXPECT_THAT(body_of(page), HasSubstr("&#60;script&#62;alert(1)"));
}

TEST(Page, NeedsNoNetworkAndRunsNoScriptButItsOwn) {
  const std::string page = page_of(full_result());
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'nonce-n0nce'"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe")));
  EXPECT_EQ(times(page, "<script"), times(page, "<script nonce=\"n0nce\"") + 1) << "and the data";
  for (const char* outside : {"<link", "<iframe", " src=", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  for (const char* place : {"{{nonce}}", "{{body}}", "{{charts}}", "{{title}}", "{{page.css}}"}) {
    EXPECT_THAT(page, Not(HasSubstr(place)));
  }
}

TEST(Page, NoncesDiffer) { EXPECT_NE(make_nonce(), make_nonce()); }

TEST(Page, CanBeReadWithoutItsScripts) {
  const std::string body = body_of(page_of(full_result()));
  EXPECT_THAT(body, HasSubstr("violated exclusion: redis-set-nx: lost updates 12"));
  EXPECT_THAT(body, HasSubstr("<td class=\"bad\">violated</td>"));
  EXPECT_THAT(body, AllOf(HasSubstr("<th scope=\"row\">redis-set-nx</th>"),
                          HasSubstr("All figures of each strategy"), HasSubstr("longest_streak")));
  EXPECT_THAT(body, HasSubstr("asks for the lock")) << "of a play";
}

TEST(Page, HasATableForEachLoad) {
  Result result = minimal_result();
  for (const char* load : {"alone", "demand"}) {
    result.runs.push_back(simple_run("a"));
    result.runs.back().acquire = sample_distribution();
    result.runs.back().load = Load{.name = load, .clients = 2};
  }
  const std::string body = body_of(page_of(result));
  EXPECT_THAT(body, AllOf(HasSubstr("<h3>alone: "), HasSubstr("<h3>demand: ")));
  EXPECT_THAT(body, HasSubstr("Next: lockbench hazards"));
  EXPECT_EQ(times(body, "<canvas"), 2U) << "each load has its own percentiles";
}

TEST(Page, ShowsWhatAWatchSaw) {
  const std::string body = body_of(to_page(sources_of(full_result()), "n"));
  EXPECT_THAT(body, AllOf(HasSubstr("The locks that hurt most"), HasSubstr("How it was seen")));
  Result empty = minimal_result();
  empty.observed.emplace();
  EXPECT_THAT(page_of(empty), HasSubstr("no locks were seen"));
}

TEST(Page, SeveralResultsStandSideBySide) {
  Result a = minimal_result(), b = minimal_result();
  a.runs = {simple_run("x"), simple_run("only-a")};
  b.runs = {simple_run("x")};
  b.runs[0].sections_per_second = 30;
  b.environment.cpu = "another";
  const std::string page =
      to_page(std::vector<Source>{{"1/a.json", a, {}}, {"2/b.json", b, {}}}, "n");
  EXPECT_THAT(page, HasSubstr("Side by side"));
  EXPECT_THAT(page, HasSubstr("a.json and b.json differ in"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">x</th><td>0</td><td>–</td><td>30</td>"));
  a.runs.clear();
  const std::vector<Source> nothing_in_common{{"a.json", a, {}}, {"b.json", b, {}}};
  EXPECT_THAT(to_page(nothing_in_common, "n"), Not(HasSubstr("Side by side")));
}

TEST(Page, TellsHowToRepeatItInOneHarmlessLineWhateverTheFileHolds) {
  Result result = minimal_result();
  EXPECT_THAT(page_of(result), Not(HasSubstr("The command to repeat it")));
  result.command = {"run", "redis-*", "a'; rm -rf /\n#", "$(reboot)", "--hold", "2ms"};
  EXPECT_THAT(page_of(result),
              HasSubstr(">lockbench run &#39;redis-*&#39; &#39;a&#39;\\&#39;&#39;; rm -rf / #&#39; "
                        "&#39;$(reboot)&#39; --hold 2ms</pre>"));
}

TEST(Page, ListsTheSettingsButNotWhereOutputWent) {
  Result result = full_result();
  result.workload["out"] = "/home/somebody/result.json";
  EXPECT_THAT(page_of(result),
              AllOf(HasSubstr("<th scope=\"row\">hold</th>"), Not(HasSubstr("/home/somebody"))));
}

TEST(Page, StaysLightWhateverTheFileHolds) {
  Result plays = minimal_result(), runs = minimal_result();
  plays.hazards.emplace();
  for (int i = 0; i < 3500; ++i) {
    Hazard hazard = sample_hazards().front();
    hazard.scenario = fmt::format("scenario-{}", i % 100);
    hazard.strategy = fmt::format("strategy-{}", i / 100);
    hazard.timeline.assign(100, {1, "somebody", std::string(60, 'x')});
    plays.hazards->push_back(hazard);
  }
  for (int i = 0; i < 500; ++i) {
    runs.runs.push_back(simple_run(fmt::format("s{}", i)));
    runs.runs.back().errors = {std::string(1'000'000, 'x')};
  }
  const std::vector<Source> sources{{"a", plays, {}}, {"b", runs, {}}};
  const std::string page = to_page(sources, "n");
  EXPECT_LT(page.size(), 6'000'000U);
  EXPECT_THAT(page, HasSubstr("3000 of 3500 plays are shown"));
  EXPECT_THAT(page, HasSubstr("without their timeline"));
  EXPECT_THAT(page, HasSubstr("100 more rows are in the file"));
}

}  // namespace
}  // namespace lockbench::results::report
