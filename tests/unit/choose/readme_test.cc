#include <filesystem>
#include <fstream>
#include <iterator>

#include "choose/reference.h"
#include "cli/console/publish.h"
#include "results/tables/readme_tables.h"
#include "tests/unit/choose/fixtures.h"

namespace lockbench {
namespace {

using testing::HasSubstr;

std::string readme() {
  std::ifstream file(LOCKBENCH_SOURCE_DIR "/README.md", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<results::Result> reference_results() {
  std::vector<results::Result> found;
  for (choose::Source& source : choose::reference()) found.push_back(std::move(source.result));
  return found;
}

/// README.md as scripts/readme_tables.sh would write it from these results.
tl::expected<std::string, std::string> drawn_from(const std::vector<results::Result>& sources) {
  results::KnownFlaws flaws;
  for (const results::Result& source : sources) flaws.merge(cli::known_flaws(source));
  return results::with_tables(readme(), results::readme_tables(sources, flaws));
}

TEST(Readme, ShowsTheReferenceResults) {
  const auto drawn = drawn_from(reference_results());
  ASSERT_TRUE(drawn) << drawn.error();
  EXPECT_EQ(*drawn, readme()) << "scripts/readme_tables.sh draws its tables anew";
}

TEST(Readme, WouldShowAFigureThatChanged) {
  auto sources = reference_results();
  for (results::Result& source : sources) {
    for (results::Run& run : source.runs) run.acquire.p50 *= 2;
  }
  const auto drawn = drawn_from(sources);
  ASSERT_TRUE(drawn) << drawn.error();
  EXPECT_NE(*drawn, readme());
}

TEST(Readme, HasATableOfEachKind) {
  for (const char* name : {"comparison", "hazards", "quorum", "renewal"}) {
    EXPECT_THAT(readme(), HasSubstr(std::string("<!-- reference: ") + name + " -->"));
  }
}

TEST(Reference, IsSmall) {
  std::uintmax_t bytes = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(LOCKBENCH_SOURCE_DIR "/results/reference")) {
    if (entry.path().extension() == ".json") bytes += entry.file_size();
  }
  EXPECT_GT(bytes, 0U);
  EXPECT_LT(bytes, 700'000U) << "lockbench carries it along: see results/thin.h";
}

}  // namespace
}  // namespace lockbench
