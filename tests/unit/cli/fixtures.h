#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "strategies/store.h"
#include "tests/integration/support/program.h"

namespace lockbench::cli {

/// The message of the usage error that `work` throws.
template <class Work>
std::string usage_error_of(const Work& work) {
  try {
    work();
    return "accepted";
  } catch (const UsageError& error) {
    return error.message();
  }
}

/// The options of a command, from its arguments, or the message of the usage error.
template <class Options>
tl::expected<Options, std::string> parse(const std::vector<std::string>& args) {
  try {
    Options values;
    OptionList options = options_of(values);
    read(values, options, args);
    return values;
  } catch (const UsageError& error) {
    return tl::unexpected(error.message());
  }
}

/// The error for arguments that must be refused.
template <class Options>
std::string error_of(const std::vector<std::string>& args) {
  const auto options = parse<Options>(args);
  return options ? "accepted" : options.error();
}

inline tl::expected<RunOptions, std::string> parse_run(const std::vector<std::string>& args) {
  return parse<RunOptions>(args);
}
inline std::string error_of(const std::vector<std::string>& args) {
  return error_of<RunOptions>(args);
}

/// Every option of `run`, at its default.
inline OptionList run_options() {
  static RunOptions values;
  values = {};
  return options_of(values);
}

/// Whether the option names servers of a store that this build leaves out.
inline bool left_out(std::string_view option) {
  const auto kinds = store_kinds();
  return std::any_of(kinds.begin(), kinds.end(), [&](const StoreKind* kind) {
    return kind->name == option && !kind->not_built.empty();
  });
}

struct Ran {
  int code = 0;
  std::string out, err;
};

/// Runs lockbench in this process.
inline Ran ran(const std::vector<std::string>& args) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran result;
  result.code = dispatch(args);
  std::fflush(stdout);
  result.out = testing::internal::GetCapturedStdout();
  result.err = testing::internal::GetCapturedStderr();
  return result;
}

/// Expects a one-line error that names the culprit, and no output.
inline void expect_refused(const Ran& ran, const testing::Matcher<const std::string&>& message) {
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_THAT(ran.err, testing::AllOf(testing::StartsWith("lockbench: "), message));
}

/// A file that exists during the test, for its owner only.
class TemporaryFile {
 public:
  TemporaryFile(std::string_view name, std::string_view text) : path_(scratch_.write(name, text)) {}
  const std::string& path() const { return path_; }

 private:
  const test::Scratch scratch_;
  const std::string path_;
};

/// The output of a console.
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
