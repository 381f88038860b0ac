#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/options/parse.h"
#include "strategies/store.h"

namespace lockbench::cli {

inline tl::expected<RunOptions, UsageError> parse_run(const std::vector<std::string>& args) {
  return parse(run_command(), args);
}

/// The error of arguments that must not be accepted.
inline std::string error_of(const std::vector<std::string>& args) {
  const auto options = parse_run(args);
  return options ? "accepted" : options.error().message;
}

/// Whether the option names servers of a backend that this build leaves out.
inline bool left_out(std::string_view option) {
  const auto backends = server_options();
  return std::any_of(backends.begin(), backends.end(),
                     [&](const Option& backend) { return backend.name == option; }) &&
         find_store_kind(option) == nullptr;
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

/// What a console writes.
class Written {
 public:
  Written() : stream_(open_memstream(&text_, &size_)) {}
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  ~Written() {
    static_cast<void>(std::fclose(stream_));
    std::free(text_);  // NOLINT(cppcoreguidelines-no-malloc): open_memstream wants it
  }
  std::FILE* stream() { return stream_; }
  std::string text() {
    static_cast<void>(std::fflush(stream_));
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

}  // namespace lockbench::cli
