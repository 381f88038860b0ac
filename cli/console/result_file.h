#pragma once

#include <string>
#include <string_view>

#include "cli/console/console.h"
#include "results/file/model.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// As --out.
inline constexpr std::string_view kStdout = "-";

/// Where a command's result goes. It is kept there after each step, so that what is over outlives
/// whatever ends the command; results that go to stdout are written once, at the end. For one
/// thread at a time.
class ResultFile {
 public:
  /// `console` must outlive it.
  ResultFile(std::string path, Console& console) : path_(std::move(path)), console_(console) {}

  const std::string& path() const { return path_; }
  bool is_stdout() const { return path_ == kStdout; }
  Console& console() const { return console_; }

  /// Saves what there is so far. Only the first failure is said, as the end may have room again.
  void keep(const results::Result& result);
  /// Whether keep() has taken at most a twentieth of the time so far: for those whose measurements
  /// go on meanwhile.
  bool has_time() const;

  /// At the end: says where the result is. False if it could not be written there.
  bool save(const results::Result& result);

 private:
  const std::string path_;
  Console& console_;
  bool failed_ = false;
  TimePoint kept_at_{};
  Duration took_{};
};

}  // namespace lockbench::cli
