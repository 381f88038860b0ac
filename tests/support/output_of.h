#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace lockbench::test {

struct Output {
  std::string text;
  int status = 0;  ///< from pclose(); 0: exit code 0
};

/// The output of a shell command.
inline Output output_of(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) return {.text = "cannot be started: " + command, .status = -1};
  Output output;
  std::array<char, 4096> piece{};
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe)) {
    output.text.append(piece.data(), got);
  }
  output.status = ::pclose(pipe);
  return output;
}

}  // namespace lockbench::test
