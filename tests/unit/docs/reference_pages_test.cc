#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "hazards/scenario.h"
#include "strategies/redis/client/rights.h"
#include "strategies/registry.h"
#include "tests/folders.h"

namespace lockbench {
namespace {

using testing::Contains;
using testing::HasSubstr;
namespace fs = std::filesystem;

struct Page {
  fs::path path;
  std::string text;
};

/// The page with this path in the repository.
Page page_of(const fs::path& path) {
  Page page{LOCKBENCH_SOURCE_DIR / path, ""};
  if (fs::is_directory(page.path)) return page;
  std::ifstream file(page.path, std::ios::binary);
  page.text.assign(std::istreambuf_iterator<char>(file), {});
  return page;
}

/// The pages that scripts/reference_tables.py updates.
std::vector<Page> pages() {
  std::vector<Page> found{page_of("README.md")};
  for (const auto& entry : fs::directory_iterator(LOCKBENCH_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") found.push_back(page_of(entry.path()));
  }
  return found;
}

/// The anchors of a page's headings, as repository hosts name them.
std::set<std::string> anchors_of(const Page& page) {
  std::set<std::string> anchors;
  std::istringstream lines(page.text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) continue;
    std::string anchor;
    for (const char c : line.substr(line.find(' ') + 1)) {
      if (c == ' ' || c == '-') anchor += '-';
      const auto letter = static_cast<unsigned char>(c);
      if (std::isalnum(letter) != 0) anchor += static_cast<char>(std::tolower(letter));
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(Pages, LinkToPlacesThatExist) {
  const std::regex link(R"(\]\(([^)#:]*)(#[^)]*)?\))");
  std::vector<Page> linking = pages();
  for (const char* folder : {"choose", "dashboards", "results", "tests/bench"}) {
    linking.push_back(page_of(fs::path(folder) / "README.md"));
    EXPECT_FALSE(linking.back().text.empty()) << folder;
  }
  for (const char* file : {"CONTRIBUTING.md", "SECURITY.md"}) linking.push_back(page_of(file));
  for (const Page& page : linking) {
    for (std::sregex_iterator at(page.text.begin(), page.text.end(), link), end; at != end; ++at) {
      const std::string file = (*at)[1].str(), anchor = (*at)[2].str();
      const Page target = file.empty() ? page : page_of(page.path.parent_path() / file);
      EXPECT_TRUE(fs::exists(target.path)) << page.path << " links to " << target.path;
      if (anchor.empty()) continue;
      EXPECT_THAT(anchors_of(target), Contains(anchor.substr(1)))
          << page.path << " links to " << target.path;
    }
  }
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
  const std::string strategies = page_of("docs/strategies.md").text,
                    hazards = page_of("docs/hazards.md").text;
  for (const Descriptor* strategy : all_strategies()) {
    EXPECT_TRUE(names(strategies, std::string(strategy->name)))
        << "docs/strategies.md has no row for " << strategy->name;
  }
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    EXPECT_TRUE(names(hazards, std::string(scenario->name)))
        << "docs/hazards.md has no row for " << scenario->name;
  }
  EXPECT_THAT(page_of("README.md").text,
              HasSubstr(fmt::format("{} strategies", all_strategies().size())));
}

TEST(Pages, ShowTheLeastRightsInRedisThatListShows) {
  EXPECT_THAT(page_of("docs/operations.md").text,
              HasSubstr("\n" + redis::acl_command(all_strategies()) + "\n"))
      << "lockbench list --redis-acl prints it";
}

TEST(ReferenceResults, AreSmall) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(LOCKBENCH_SOURCE_DIR "/results/reference")) {
    if (entry.path().extension() == ".json") bytes += entry.file_size();
  }
  EXPECT_GT(bytes, 0U);
  EXPECT_LT(bytes, 3'000'000U) << "they are embedded in lockbench: see scripts/condense.py";
}

}  // namespace
}  // namespace lockbench
