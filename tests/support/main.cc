#include "tests/support/main.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// The main function of all test programs. With LOCKBENCH_TESTS_NO_SKIPS in the environment, a test
// that is skipped fails its program.
namespace lockbench::test {
namespace {

using Arguments = std::map<std::string_view, std::function<void(std::string_view)>>;

Arguments& own_arguments() {
  static Arguments all{{"--folder", select_folder}};
  return all;
}

std::vector<std::string>& folders() {
  static std::vector<std::string> selected;
  return selected;
}

void take(std::string_view word) {
  const std::size_t end = std::min(word.find('='), word.size());
  const auto found = own_arguments().find(word.substr(0, end));
  if (found == own_arguments().end() || end == word.size()) {
    throw std::runtime_error(fmt::format("unknown argument {}", word));
  }
  found->second(word.substr(end + 1));
}

/// Such as "tests/unit/cli", from the relative or absolute path that the compiler was given.
std::string folder_of(const testing::TestInfo& test) {
  const std::string path = std::filesystem::path(test.file()).parent_path().string();
  return path.substr(std::min(path.find("tests/"), path.size()));
}

/// Excludes the tests of all other folders in GoogleTest's filter.
void leave_out_other_folders() {
  std::map<std::string, int> counts;
  std::string others;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    std::string left_out;
    int kept = 0;
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string folder = folder_of(test);
      ++counts[folder];
      if (std::find(folders().begin(), folders().end(), folder) != folders().end()) {
        ++kept;
      } else {
        left_out += fmt::format("{}.{}:", suite.name(), test.name());
      }
    }
    others += kept == 0 ? fmt::format("{}.*:", suite.name()) : left_out;
  }
  for (const std::string& folder : folders()) {
    if (counts[folder] == 0) throw std::runtime_error(fmt::format("no tests in {}", folder));
  }
  std::string& filter = testing::GTEST_FLAG(filter);
  filter += (filter.find('-') == std::string::npos ? "-" : ":") + others;
}

int run(int argc, char** argv) {
  for (const std::string_view word : std::vector<std::string_view>(argv + 1, argv + argc)) {
    if (word.starts_with("--gtest_") || word == "--help") continue;
    take(word);
  }
  testing::InitGoogleTest(&argc, argv);
  if (!folders().empty()) leave_out_other_folders();
  const int code = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const bool is_shard = std::getenv("GTEST_TOTAL_SHARDS") != nullptr;
  if (!is_shard && all.test_to_run_count() == 0) throw std::runtime_error("no such test");
  if (all.skipped_test_count() > 0 && std::getenv("LOCKBENCH_TESTS_NO_SKIPS") != nullptr) {
    throw std::runtime_error("a skipped test counts as a failure here");
  }
  return code;
}

}  // namespace

void select_folder(std::string_view folder) {
  folders().push_back(fmt::format("tests/{}", folder));
}

ArgumentRegistration::ArgumentRegistration(std::string_view name_with_dashes,
                                           std::function<void(std::string_view)> take) {
  own_arguments().emplace(name_with_dashes, std::move(take));
}

}  // namespace lockbench::test

int main(int argc, char** argv) {
  try {
    return lockbench::test::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
