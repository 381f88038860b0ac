#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <utility>

namespace lockbench {
namespace {

/// What it prints, and its exit code.
std::pair<std::string, int> output_of(const std::string& command) {
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {"cannot be run", -1};
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), got);
  }
  return {text, pclose(pipe)};
}

TEST(ProbeUnit, IsRatedBelowThree) {
  if (output_of("systemd-analyze --version").second != 0) GTEST_SKIP() << "there is no systemd";
  const auto [text, code] = output_of(
      "systemd-analyze security --offline=true --no-pager --threshold=29 " LOCKBENCH_SOURCE_DIR
      "/exporter/lockbench-probe.service");
  EXPECT_EQ(code, 0) << text;
}

}  // namespace
}  // namespace lockbench
