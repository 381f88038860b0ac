#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/folders.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {

std::map<std::string, Target, std::less<>>& targets() {
  static std::map<std::string, Target, std::less<>> all;
  return all;
}

namespace {

namespace fs = std::filesystem;

fs::path fuzzers() { return LOCKBENCH_SOURCE_DIR "/tests/fuzz"; }

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, IsReadByItsTarget) {
  const Target target = targets().at(GetParam());
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fuzzers() / "corpus" / GetParam())) {
    target(content(entry.path()));
    ++files;
  }
  EXPECT_GE(files, 3);
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& [name, target] : targets()) found.push_back(name);
  return found;
}

INSTANTIATE_TEST_SUITE_P(All, Corpus, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

TEST(Corpora, BelongToTargets) {
  for (const auto& entry : fs::directory_iterator(fuzzers() / "corpus")) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(fs::exists(fuzzers() / (name + ".cc"))) << name;
  }
}

}  // namespace
}  // namespace lockbench::fuzz
