#pragma once

#include <cstddef>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace lockbench::cli {

/// Whether `stream` may get control sequences: cursor movements; colors.
bool is_terminal(std::FILE* stream);
bool may_color(std::FILE* stream);
/// The width of a terminal, else COLUMNS of the environment. Nothing: unlimited.
std::optional<std::size_t> output_width(std::FILE* stream);
/// Decided by the first of LC_ALL, LC_CTYPE and LANG that is set.
bool is_utf8_locale();

/// Messages to the user while lockbench works: lines, and on a terminal one status line below them,
/// which is redrawn in place. Thread-safe. Every line goes through presentable() first. ASCII only,
/// unless the locale is UTF-8.
class Console {
 public:
  /// `stream` must outlive the console. Without `terminal` there is no status line.
  Console(std::FILE* stream, bool terminal, bool quiet)
      : stream_(stream), terminal_(terminal), quiet_(quiet) {}
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console() { status(""); }

  bool terminal() const { return terminal_; }

  /// Silenced by --quiet.
  void note(std::string_view line) {
    if (!quiet_) warn(line);
  }
  /// Not silenced by --quiet.
  void warn(std::string_view line);
  /// Redraws the status line, cut to the width of the terminal. Empty removes it.
  void status(std::string_view line);

 private:
  std::FILE* const stream_;
  const bool terminal_, quiet_;
  std::mutex mutex_;
  std::string status_;
};

}  // namespace lockbench::cli
