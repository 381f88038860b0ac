#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "results/report/limits.h"
#include "results/report/report.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results::report {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile =
    "</script><script>alert(1)</script><!--\"'`{{nonce}}${1}\xe2\x80\xa8 &amp; \xff\x1b[2J";

View view_with(const std::string& text) {
  return {.title = text, .parts = {{.title = text, .headline = {{Tone::bad, text}}}}};
}

std::size_t times(std::string_view page, std::string_view text) {
  std::size_t count = 0;
  for (auto at = page.find(text); at != std::string_view::npos; at = page.find(text, at + 1)) {
    ++count;
  }
  return count;
}

TEST(ViewJson, HoldsNothingThatHtmlWouldRead) {
  const std::string text = to_view_json(view_with(kHostile));
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << static_cast<int>(c);
}

TEST(ViewJson, SaysTheSameAllTheSame) {
  const json document = json::parse(to_view_json(view_with("a < b & \"c\" µ")));
  EXPECT_EQ(document.at("parts").at(0).at("headline").at("lines").at(0).at("text"),
            "a < b & \"c\" µ");
}

TEST(ViewJson, CutsTextsAndListsAtTheirBounds) {
  View view = view_with(std::string(1'000'000, 'x'));
  view.parts[0].headline.assign(100'000, {Tone::plain, "line"});
  Table table{.caption = "t", .titles = {"a"}};
  table.rows.assign(100'000, {Cell{"cell"}});
  view.parts[0].sections = {{.title = "s", .blocks = {table}}};
  const std::string text = to_view_json(view);
  EXPECT_LT(text.size(), 50'000U);
  const json document = json::parse(text);
  EXPECT_EQ(document.at("parts")[0].at("sections")[0].at("blocks")[0].at("left_out"),
            100'000 - kMostRows);
}

TEST(ViewJson, WhatIsNoNumberIsNull) {
  View view = view_with("");
  const LineChart chart{.title = "c",
                        .lines = {{.name = "l", .points = {{1, NAN}, {INFINITY, 2}}}}};
  view.parts[0].sections = {{.title = "s", .blocks = {chart}}};
  const json document = json::parse(to_view_json(view));
  const json& points =
      document.at("parts")[0].at("sections")[0].at("blocks")[0].at("lines")[0].at("points");
  EXPECT_EQ(points, json::parse("[[1.0,null],[null,2.0]]"));
}

TEST(Page, HasAsManyScriptsWithHostileDataAsWithout) {
  const std::string tame = to_page(view_with("tame"), "n0nce");
  const std::string page = to_page(view_with(kHostile), "n0nce");
  EXPECT_EQ(times(page, "<script"), times(tame, "<script"));
  EXPECT_EQ(times(page, "</script"), times(tame, "</script"));
  EXPECT_EQ(times(page, "n0nce"), times(tame, "n0nce")) << "data asked for the nonce";
}

TEST(Page, NeedsNoNetwork) {
  const std::string page = to_page(view_with("tame"), "n0nce");
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'nonce-n0nce'"));
  EXPECT_THAT(page, HasSubstr("Chart.js v3"));
  for (const char* outside : {" src=", "@import", "url(", "fetch(", "XMLHttpRequest", "innerHTML",
                              "document.write", "eval("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside))) << outside;
  }
}

TEST(Page, FillsEveryPlaceOfItsTemplate) {
  const std::string page = to_page(view_with("tame"), "n0nce");
  for (const char* place : {"{{nonce}}", "{{data}}", "{{title}}", "{{page.css}}", "{{page.js}}"}) {
    EXPECT_THAT(page, Not(HasSubstr(place)));
  }
}

TEST(Page, NoncesDiffer) { EXPECT_NE(make_nonce(), make_nonce()); }

TEST(Page, StaysLightWhateverTheFileHolds) {
  Result result = minimal_result();
  result.hazards.emplace();
  for (int i = 0; i < 3500; ++i) {
    Hazard hazard = sample_hazards().front();
    hazard.scenario = fmt::format("scenario-{}", i % 100);
    hazard.strategy = fmt::format("strategy-{}", i / 100);
    hazard.timeline.assign(100, {1, "somebody", std::string(60, 'x')});
    result.hazards->push_back(hazard);
  }
  for (int i = 0; i < 300; ++i) result.runs.push_back(simple_run(fmt::format("s{}", i)));
  for (auto& run : result.runs) run.load = {};
  const Source source{.file = "a.json", .result = result, .flaws = {}};
  const View view = make_view(std::span(&source, 1));
  EXPECT_LT(to_page(view, "n").size(), 4'000'000U);
  const std::string said = to_view_json(view);
  EXPECT_THAT(said, HasSubstr("3000 of 3500 plays are shown"));
  EXPECT_THAT(said, HasSubstr("only the first 64 strategies are shown"));
  EXPECT_THAT(said, HasSubstr("without their timeline"));
}

}  // namespace
}  // namespace lockbench::results::report
