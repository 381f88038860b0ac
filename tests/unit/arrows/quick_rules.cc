#include "tests/unit/arrows/quick_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostExceptions = 10;
constexpr std::array<std::string_view, 6> kFolders{"tests/unit",          "tests/conformance",
                                                   "tests/hostile",       "tests/integration",
                                                   "tests/hazards/plays", "tests/dashboards"};
/// The clocks' names may be those of aliases. The carrier's time bounds waits, but is no assertion.
constexpr std::array<std::string_view, 9> kWords{"sleep_for",
                                                 "sleep_until",
                                                 "usleep",
                                                 "nanosleep",
                                                 "clock::now",
                                                 "Clock::now",
                                                 "slack()",
                                                 "LT(Carrier::current().now()",
                                                 "LE(Carrier::current().now()"};

/// The line without comments after // and without what stands between quotes.
std::string code_of(std::string_view line) {
  std::string code;
  char quote = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (quote != 0) {
      if (line[at] == '\\')
        ++at;
      else if (line[at] == quote)
        quote = 0;
      continue;
    }
    if (line.substr(at).starts_with("//")) break;
    if (line[at] == '"') quote = '"';
    // Not what separates digits.
    if (line[at] == '\'' && (at == 0 || !std::isalnum(static_cast<unsigned char>(line[at - 1])))) {
      quote = '\'';
    }
    code += line[at];
  }
  return code;
}

/// "FILE:LINE: WORD" for each word in the file that breaks the rules.
std::vector<std::string> words_in(const fs::path& root, const std::string& file) {
  std::vector<std::string> found;
  std::ifstream stream(root / file);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    const std::string code = code_of(line);
    for (const std::string_view word : kWords) {
      if (code.find(word) == std::string::npos) continue;
      found.push_back(fmt::format("{}:{}: {}", file, number, word));
    }
  }
  return found;
}

std::vector<std::string> sources_in(const fs::path& root, std::string_view folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const fs::path extension = entry.path().extension();
    if (extension != ".cc" && extension != ".h") continue;
    files.push_back(entry.path().lexically_relative(root).string());
  }
  return files;
}

}  // namespace

std::vector<std::string> broken_quick_rules(const fs::path& root,
                                            std::span<const Exception> exceptions) {
  std::vector<std::string> broken;
  std::vector<std::string_view> unneeded;
  for (const Exception& exception : exceptions) unneeded.push_back(exception.file);
  for (const std::string_view folder : kFolders) {
    if (!fs::is_directory(root / folder)) {
      broken.push_back(fmt::format("{}: no such folder", folder));
      continue;
    }
    for (const std::string& file : sources_in(root, folder)) {
      const std::vector<std::string> words = words_in(root, file);
      if (words.empty()) continue;
      const bool excepted = std::any_of(exceptions.begin(), exceptions.end(),
                                        [&](const Exception& one) { return one.file == file; });
      std::erase(unneeded, file);
      if (!excepted) broken.insert(broken.end(), words.begin(), words.end());
    }
  }
  for (const std::string_view file : unneeded) {
    broken.push_back(fmt::format("{}: needs no exception", file));
  }
  for (const Exception& one : exceptions.subspan(std::min(kMostExceptions, exceptions.size()))) {
    broken.push_back(fmt::format("{}: is more than {} exceptions", one.file, kMostExceptions));
  }
  std::sort(broken.begin(), broken.end());
  return broken;
}

}  // namespace lockbench::test
