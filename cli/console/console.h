#pragma once

#include <cstddef>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

namespace lockbench::cli {

/// Whether `stream` may get control sequences: cursor movements; colors.
bool is_terminal(std::FILE* stream);
bool may_color(std::FILE* stream);
/// Size of a terminal, in characters.
struct ScreenSize {
  std::size_t columns = 80, lines = 24;
};
/// The default if the terminal does not report its size.
ScreenSize screen_size(int terminal);
/// Writes the text, or as much of it as the terminal takes within 200 ms: Ctrl-S may block it.
/// False if the terminal is gone.
bool write_to(int terminal, std::string_view text);
/// The text that draws these lines from the top left corner and clears the rest.
std::string frame(std::span<const std::string> lines);
/// The width of a terminal, else COLUMNS of the environment. Nothing: unlimited.
std::optional<std::size_t> output_width(std::FILE* stream);
/// Decided by the first of LC_ALL, LC_CTYPE and LANG that is set.
bool is_utf8_locale();

/// Reports what a command does to the program that started it, in lines of JSON:
/// {"event":"progress","time":"2026-01-01T12:00:00Z",...}. Thread-safe.
class Events {
 public:
  /// `target`: a file, which is overwritten; "-": stdout; a number above 2: that open descriptor.
  /// The error says what is wrong with it.
  static tl::expected<std::unique_ptr<Events>, std::string> open(const std::string& target);

  using Value = std::variant<std::string, std::int64_t, double>;
  using Fields = std::map<std::string, Value>;
  /// False the first time that writing fails; nothing is written from then on.
  bool write(const std::string& event, const Fields& fields);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept;
  };

  explicit Events(std::FILE* file) : file_(file) {}

  std::mutex mutex_;
  const std::unique_ptr<std::FILE, Close> file_;
  bool failed_ = false;
};

/// Messages to the user while lockbench works: lines, and on a terminal one status line below them,
/// which is redrawn in place. Thread-safe. Every line goes through presentable() first. ASCII only,
/// unless the locale is UTF-8.
class Console {
 public:
  /// `stream` must outlive the console. Without `terminal` there is no status line. Notes and
  /// warnings also go to `events`, if given.
  Console(std::FILE* stream, bool terminal, bool quiet, std::unique_ptr<Events> events = nullptr)
      : stream_(stream), terminal_(terminal), quiet_(quiet), events_(std::move(events)) {}
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console() { status(""); }

  bool terminal() const { return terminal_; }

  /// Silenced by --quiet.
  void note(std::string_view line);
  /// Not silenced by --quiet.
  void warn(std::string_view line);
  /// Redraws the status line, cut to the width of the terminal. Empty removes it.
  void status(std::string_view line);
  /// The latest lines, at most three: a screen that is drawn over them shows them again.
  std::vector<std::string> latest() const;
  /// Writes an event for programs. `line`, unless empty, says the same to people; --quiet silences
  /// it.
  void event(const std::string& name, const Events::Fields& fields, std::string_view line = "");

 private:
  void write_line(std::string_view line);

  std::FILE* const stream_;
  const bool terminal_, quiet_;
  const std::unique_ptr<Events> events_;
  mutable std::mutex mutex_;
  std::string status_;
  std::deque<std::string> latest_;
};

}  // namespace lockbench::cli
