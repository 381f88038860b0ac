#include "cli/options/questions.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "cli/console/text.h"

namespace lockbench::cli {
namespace {

constexpr int kTries = 3;

/// Without blanks around it; nothing at the end of the input. What is too long for a line is cut
/// off.
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

/// People say yes and no to a flag.
std::string value_of(const Option& option, const std::string& answer) {
  if (option.type != Option::Type::flag) return answer;
  return answer == "yes" || answer == "y"  ? "true"
         : answer == "no" || answer == "n" ? "false"
                                           : answer;
}

}  // namespace

tl::expected<void, UsageError> ask(std::span<const Option> options, std::FILE* in, std::FILE* out,
                                   RunOptions& answers) {
  for (const Option& option : options) {
    const bool flag = option.type == Option::Type::flag;
    fmt::print(out, "{}: {}{}\n", option.name, option.help, flag ? ": yes or no (no)" : "");
    for (int tries = 1;; ++tries) {
      fmt::print(out, "> ");
      (void)std::fflush(out);
      const auto answer = read_line(in);
      if (!answer) {
        fmt::print(out, "\n");
        return tl::unexpected(UsageError{"the answers ended before the questions did"});
      }
      if (answer->empty()) break;
      const auto done = option.set(answers, value_of(option, *answer));
      if (done) break;
      if (tries == kTries) {
        return tl::unexpected(UsageError{fmt::format("{}: {}", option.name, done.error())});
      }
      fmt::print(out, "  {}\n", presentable(done.error()));
    }
  }
  return {};
}

}  // namespace lockbench::cli
