#include "cli/console/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "cli/options/text.h"
#include "results/tables/text.h"

namespace lockbench::cli {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

// Thread-safe, as nothing in this program changes the environment.
std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Errors are ignored: a closed stderr must not end a run.
void write(std::FILE* stream, std::string_view text) noexcept {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stream));
  static_cast<void>(std::fflush(stream));
}

std::string in_locale(std::string_view line) {
  return is_utf8_locale() ? std::string(line) : results::ascii(line);
}

}  // namespace

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1 && environment("TERM") != "dumb";
}

bool may_color(std::FILE* stream) { return is_terminal(stream) && environment("NO_COLOR").empty(); }

int terminal_width(std::FILE* stream) {
  constexpr int kUnknownWidth = 80;
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnknownWidth;
  return size.ws_col;
}

std::optional<std::size_t> output_width(std::FILE* stream) {
  if (is_terminal(stream)) return static_cast<std::size_t>(terminal_width(stream));
  const auto width = results::parse_number<std::size_t>(environment("COLUMNS"));
  return width > 0U ? width : std::nullopt;
}

bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = environment(name);
    if (locale.empty()) continue;
    return locale.find("UTF-8") != std::string_view::npos ||
           locale.find("utf8") != std::string_view::npos ||
           locale.find("utf-8") != std::string_view::npos;
  }
  return false;
}

void Console::note(std::string_view line) { event("note", {{"text", std::string(line)}}, line); }

void Console::warn(std::string_view line) {
  event("warning", {{"text", std::string(line)}});
  write_line(line);
}

void Console::event(const std::string& name, const Events::Fields& fields, std::string_view line) {
  if (events_ && !events_->write(name, fields)) write_line("--events: cannot be written any more");
  if (!quiet_ && !line.empty()) write_line(line);
}

void Console::write_line(std::string_view line) {
  const std::string shown = in_locale(presentable(line));
  const std::scoped_lock lock(mutex_);
  const std::string_view clear = status_.empty() ? "" : kClearLine;
  write(stream_, fmt::format("{}{}\n{}", clear, shown, status_));
}

void Console::status(std::string_view line) {
  if (!terminal_ || quiet_) return;
  const std::scoped_lock lock(mutex_);
  std::string shown = in_locale(results::printable(line));
  if (shown == status_) return;
  status_ = std::move(shown);
  write(stream_, fmt::format("{}{}", kClearLine, status_));
}

}  // namespace lockbench::cli
