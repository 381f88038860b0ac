#include "cli/options/prompt.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "cli/options/text.h"

namespace lockbench::cli {
namespace {

constexpr int kAttempts = 3;

/// Without surrounding blanks; nothing at the end of the input. An overlong line is cut off.
std::optional<std::string> read_line(std::FILE* in) {
  std::array<char, 1024> buffer{};
  if (std::fgets(buffer.data(), static_cast<int>(buffer.size()), in) == nullptr) {
    return std::nullopt;
  }
  const std::string_view line = buffer.data();
  const std::size_t first = line.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(line.substr(first, line.find_last_not_of(" \t\r\n") + 1 - first));
}

/// A flag is answered with yes or no.
std::string value_of(const Option& option, const std::string& answer) {
  if (option.type != Option::Type::flag) return answer;
  return answer == "yes" || answer == "y"  ? "true"
         : answer == "no" || answer == "n" ? "false"
                                           : answer;
}

void prompt_for(Option& option, std::FILE* in, std::FILE* out) {
  const bool flag = option.type == Option::Type::flag;
  fmt::print(out, "{}: {}{}\n", option.name, option.help, flag ? ": yes or no (default: no)" : "");
  for (int attempt = 1;; ++attempt) {
    fmt::print(out, "> ");
    (void)std::fflush(out);
    const auto answer = read_line(in);
    if (!answer) {
      fmt::print(out, "\n");
      throw UsageError("the input ended before all questions were answered");
    }
    if (answer->empty()) return;
    const auto done = option.set(value_of(option, *answer));
    if (done) return;
    if (attempt == kAttempts) throw UsageError("{}: {}", option.name, done.error());
    fmt::print(out, "  {}\n", presentable(done.error()));
  }
}

}  // namespace

void prompt(std::span<Option> options, std::FILE* in, std::FILE* out) {
  for (Option& option : options) prompt_for(option, in, out);
}

}  // namespace lockbench::cli
