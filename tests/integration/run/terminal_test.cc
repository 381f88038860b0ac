#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/folders.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, std::string_view word, std::string_view other) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += other.size()) {
    text.replace(at, word.size(), other);
  }
  return text;
}

/// The first control byte that a terminal would obey, and the text after it, ignoring line ends and
/// color codes. Empty if there is none.
std::string first_command(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto before = i > 0 ? static_cast<unsigned char>(text[i - 1]) : 0U;
    if (text[i] == '\n' || text[i] == '\r') continue;
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      const std::size_t end = text.find_first_not_of("0123456789", i + 2);
      if (end != std::string_view::npos && text[end] == 'm') continue;
    }
    // Within other UTF-8 characters, such a byte does not follow 0xC2.
    const bool c1 = byte >= 0x80U && byte < 0xA0U && (before < 0x80U || before == 0xC2U);
    if (byte < 0x20U || byte == 0x7FU || c1) return std::string(text.substr(i, 40));
  }
  return "";
}

/// Names in a result file that move the cursor, set the title, and end the line.
TEST(Terminal, ObeysNothingThatStandsInAResultFile) {
  constexpr std::string_view kName = "redis-set-nx-lua";
  const fs::path reference = LOCKBENCH_SOURCE_DIR "/results/reference";
  for (const char* file : {"alone.json", "hazards.json"}) {
    const std::string text = read_file(reference / file);
    ASSERT_NE(text.find(kName), std::string::npos) << file;
    const Scratch scratch;
    const auto shown = [&](std::string_view name, const char* format) {
      const std::string crafted = scratch.write("crafted.json", replaced(text, kName, name));
      return lockbench(
                 scratch, {"show", crafted, "--format", format},
                 {.environment = {{"TERM", "xterm"}, {"LC_ALL", "C.UTF-8"}}, .terminal = true})
          .out;
    };
    for (const char* format : {"table", "json", "csv", "markdown"}) {
      const std::string out =
          shown(R"(a\u009b2Jb\u001b[2Jc\u001b]0;d\u0007\u0085\u0008\u007f)", format);
      EXPECT_NE(out, "");
      EXPECT_EQ(first_command(out), "") << file << ", " << format;
    }
    // Invalid JSON: the message may quote it.
    EXPECT_EQ(first_command(shown("a\x9b"
                                  "2Jb",
                                  "table")),
              "")
        << file;
  }
}

using Words = std::vector<std::string>;

/// "\x1b[31m" and its like.
const auto is_colored = testing::ContainsRegex("\x1b\\[[0-9;]*m");

TEST(Output, IsColoredOnATerminalOnlyUnlessNoColorIsSet) {
  const Scratch scratch;
  const Words arguments = {"run", "none", "--iterations", "100", "--warmup", "0ms"};
  const Outcome terminal = lockbench(scratch, arguments, {.terminal = true});
  EXPECT_THAT(terminal.out, is_colored);
  const Outcome plain =
      lockbench(scratch, arguments, {.environment = {{"NO_COLOR", "1"}}, .terminal = true});
  EXPECT_EQ(plain.code, 0);
  EXPECT_NE(plain.out.find("none"), std::string::npos);
  EXPECT_THAT(plain.out, testing::Not(is_colored));
  const Outcome pipe = lockbench(scratch, arguments);
  EXPECT_EQ(pipe.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(pipe.err.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace lockbench::test
