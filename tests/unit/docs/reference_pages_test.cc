#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "choose/reference.h"
#include "cli/console/publish.h"
#include "results/tables/reference_tables.h"
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

/// The page as scripts/reference_tables.sh would write it from these results.
tl::expected<std::string, std::string> updated(const Page& page,
                                               const std::vector<results::Result>& sources) {
  results::KnownFlaws flaws;
  for (const results::Result& source : sources) flaws.merge(cli::known_flaws(source));
  return results::with_tables(page.text, results::reference_tables(sources, flaws));
}

TEST(ReferencePages, ShowTheReferenceResults) {
  const auto sources = reference_results();
  for (const Page& page : pages()) {
    const auto expected = updated(page, sources);
    ASSERT_TRUE(expected) << page.path << ": " << expected.error();
    EXPECT_EQ(*expected, page.text) << page.path << ": scripts/reference_tables.sh updates it";
  }
}

TEST(ReferencePages, ChangeWithTheFigures) {
  auto sources = reference_results();
  for (results::Result& source : sources) {
    for (results::Run& run : source.runs) run.acquire.p50 *= 2;
  }
  bool changed = false;
  for (const Page& page : pages()) {
    const auto expected = updated(page, sources);
    ASSERT_TRUE(expected) << page.path << ": " << expected.error();
    changed = changed || *expected != page.text;
  }
  EXPECT_TRUE(changed);
}

TEST(ReferencePages, HaveATableOfEachKind) {
  std::vector<std::string> texts;
  for (const Page& page : pages()) texts.push_back(page.text);
  for (const char* name : {"comparison", "hazards", "quorum", "renewal"}) {
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

TEST(ReferenceResults, AreSmall) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(LOCKBENCH_SOURCE_DIR "/results/reference")) {
    if (entry.path().extension() == ".json") bytes += entry.file_size();
  }
  EXPECT_GT(bytes, 0U);
  EXPECT_LT(bytes, 700'000U) << "they are embedded in lockbench: see results/file/condense.h";
}

}  // namespace
}  // namespace lockbench
