#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "choose/evidence.h"
#include "cli/console/publish.h"
#include "hazards/scenario.h"
#include "results/tables/reference_tables.h"
#include "strategies/registry.h"
#include "tests/unit/choose/fixtures.h"

namespace lockbench {
namespace {

using testing::Contains;
using testing::HasSubstr;
namespace fs = std::filesystem;

struct Page {
  fs::path path;
  std::string text;
};

/// The pages that scripts/reference_tables.sh updates.
std::vector<Page> pages() {
  std::vector<fs::path> paths{LOCKBENCH_SOURCE_DIR "/README.md"};
  if (const fs::path docs(LOCKBENCH_SOURCE_DIR "/docs"); fs::exists(docs)) {
    for (const auto& entry : fs::directory_iterator(docs)) {
      if (entry.path().extension() == ".md") paths.push_back(entry.path());
    }
  }
  std::vector<Page> found;
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    found.push_back({path, {std::istreambuf_iterator<char>(file), {}}});
  }
  return found;
}

std::vector<results::Result> reference_results() {
  std::vector<results::Result> found;
  for (choose::Source& source : choose::reference()) found.push_back(std::move(source.result));
  return found;
}

/// What scripts/reference_tables.sh would write into the pages.
results::NamedTables tables_of(const std::vector<results::Result>& sources) {
  results::KnownFlaws flaws;
  for (const results::Result& source : sources) flaws.merge(cli::known_flaws(source));
  return results::reference_tables(sources, flaws);
}

TEST(ReferencePages, ShowTheReferenceResults) {
  const auto tables = tables_of(reference_results());
  for (const Page& page : pages()) {
    const auto expected = results::with_tables(page.text, tables);
    ASSERT_TRUE(expected) << page.path << ": " << expected.error();
    EXPECT_EQ(*expected, page.text) << page.path << ": scripts/reference_tables.sh updates it";
  }
}

TEST(ReferencePages, ChangeWithTheFigures) {
  auto sources = reference_results();
  for (results::Result& source : sources) {
    for (results::Run& run : source.runs) run.acquire.p50 *= 2;
  }
  const auto tables = tables_of(sources);
  bool changed = false;
  for (const Page& page : pages()) {
    const auto expected = results::with_tables(page.text, tables);
    ASSERT_TRUE(expected) << page.path << ": " << expected.error();
    changed = changed || *expected != page.text;
  }
  EXPECT_TRUE(changed);
}

TEST(ReferencePages, HaveATableOfEachKind) {
  std::vector<std::string> texts;
  for (const Page& page : pages()) texts.push_back(page.text);
  for (const char* name : {"alone", "demand", "saturated", "hazards", "quorum", "renewal"}) {
    EXPECT_THAT(texts, Contains(HasSubstr(std::string("<!-- reference: ") + name + " -->")));
  }
}

TEST(Pages, LinkToFilesThatExist) {
  const std::regex link(R"(\]\(([^)#:]+))");
  for (const Page& page : pages()) {
    for (std::sregex_iterator at(page.text.begin(), page.text.end(), link), end; at != end; ++at) {
      const fs::path target = page.path.parent_path() / (*at)[1].str();
      EXPECT_TRUE(fs::exists(target)) << page.path << " links to " << target;
    }
  }
}

std::string text_of(const char* path) {
  std::ifstream file(fs::path(LOCKBENCH_SOURCE_DIR) / path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Whether the page has `name`, or a part of it that stands for the rest: `-durable` or `store-*`.
bool names(const std::string& page, const std::string& name) {
  const auto has = [&page](const std::string& word) {
    return page.find('`' + word + '`') != std::string::npos;
  };
  if (has(name)) return true;
  for (std::size_t dash = 0; (dash = name.find('-', dash)) != std::string::npos; ++dash) {
    if (has(name.substr(dash)) || has(name.substr(0, dash) + "-*")) return true;
  }
  return false;
}

TEST(Pages, NameEveryStrategyAndScenario) {
  const std::string strategies = text_of("docs/strategies.md"),
                    hazards = text_of("docs/hazards.md");
  for (const Descriptor* strategy : all_strategies()) {
    EXPECT_TRUE(names(strategies, std::string(strategy->name)))
        << "docs/strategies.md has no row for " << strategy->name;
  }
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    EXPECT_TRUE(names(hazards, std::string(scenario->name)))
        << "docs/hazards.md has no row for " << scenario->name;
  }
  EXPECT_THAT(text_of("README.md"),
              HasSubstr(fmt::format("{} strategies", all_strategies().size())));
}

TEST(ReferenceResults, AreSmall) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(LOCKBENCH_SOURCE_DIR "/results/reference")) {
    if (entry.path().extension() == ".json") bytes += entry.file_size();
  }
  EXPECT_GT(bytes, 0U);
  EXPECT_LT(bytes, 3'000'000U) << "they are embedded in lockbench: see results/file/condense.h";
}

}  // namespace
}  // namespace lockbench
