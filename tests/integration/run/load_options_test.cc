#include <gtest/gtest.h>

#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// "\x1b[31m" and its like.
bool is_colored(const std::string& text) {
  for (std::size_t at = text.find("\x1b["); at != std::string::npos;
       at = text.find("\x1b[", at + 1)) {
    const std::size_t end = text.find_first_not_of("0123456789;", at + 2);
    if (end != std::string::npos && text[end] == 'm') return true;
  }
  return false;
}

TEST(Output, IsColoredOnATerminalOnlyUnlessNoColorIsSet) {
  const Scratch scratch;
  const Words arguments = {"run", "none", "--iterations", "100", "--warmup", "0ms"};
  const Outcome terminal = lockbench(scratch, arguments, {.terminal = true});
  EXPECT_TRUE(is_colored(terminal.out)) << terminal.out;
  const Outcome plain =
      lockbench(scratch, arguments, {.environment = {{"NO_COLOR", "1"}}, .terminal = true});
  EXPECT_EQ(plain.code, 0);
  EXPECT_NE(plain.out.find("none"), std::string::npos);
  EXPECT_FALSE(is_colored(plain.out)) << plain.out;
  const Outcome pipe = lockbench(scratch, arguments);
  EXPECT_EQ(pipe.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(pipe.err.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace lockbench::test
