#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/parse.h"

namespace lockbench {

inline tl::expected<RunOptions, UsageError> parse_run(const std::vector<std::string>& args) {
  return parse(run_command(), args);
}

/// The error of arguments that must not be accepted.
inline std::string error_of(const std::vector<std::string>& args) {
  const auto options = parse_run(args);
  return options ? "accepted" : options.error().message;
}

/// A file that is gone after the test.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() / (std::to_string(getpid()) + name)) {
    std::ofstream(path_) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace lockbench
