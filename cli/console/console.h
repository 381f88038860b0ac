#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cli/console/events.h"

namespace lockbench::cli {

/// Whether `stream` may get control sequences: cursor movements; colors.
bool is_terminal(std::FILE* stream);
bool may_color(std::FILE* stream);
/// In columns; 80 if unknown.
int terminal_width(std::FILE* stream);
/// Of a terminal its width; else the environment's COLUMNS, or nothing: unlimited.
std::optional<std::size_t> output_width(std::FILE* stream);
/// By LC_ALL, LC_CTYPE or LANG, whichever is the first that is set.
bool is_utf8_locale();

/// Messages to the user while lockbench works: lines, and on a terminal one status line below them,
/// which is redrawn in place. Thread-safe. Every line goes through presentable() first. ASCII only,
/// unless the locale is UTF-8.
class Console {
 public:
  /// `stream` must outlive the console. Without `terminal` there is no status line. Notes
  /// and warnings are told to `events` too, if there are any.
  Console(std::FILE* stream, bool terminal, bool quiet, std::unique_ptr<Events> events = nullptr)
      : stream_(stream), terminal_(terminal), quiet_(quiet), events_(std::move(events)) {}
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console() { status(""); }

  bool terminal() const { return terminal_; }
  int width() const { return terminal_width(stream_); }

  /// Silenced by --quiet.
  void note(std::string_view line);
  /// Not silenced by --quiet.
  void warn(std::string_view line);
  /// Empty removes it. At most width() columns.
  void status(std::string_view line);
  /// For programs; `line`, silenced by --quiet, says the same to people. Empty: nothing.
  void event(const std::string& name, const Events::Fields& fields, std::string_view line = "");

 private:
  void write_line(std::string_view line);

  std::FILE* const stream_;
  const bool terminal_, quiet_;
  const std::unique_ptr<Events> events_;
  std::mutex mutex_;
  std::string status_;
};

}  // namespace lockbench::cli
