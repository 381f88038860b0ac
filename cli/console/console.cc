#include "cli/console/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "cli/options/option.h"
#include "results/tables/text.h"
#include "strategies/number.h"

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

/// The width of a terminal; 80 if it does not tell.
std::size_t columns_of(std::FILE* terminal) {
  winsize size{};
  const bool told = ioctl(fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return told ? size.ws_col : 80;
}

std::string in_locale(std::string_view line) {
  return is_utf8_locale() ? std::string(line) : results::ascii(line);
}

}  // namespace

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1 && environment("TERM") != "dumb";
}

bool may_color(std::FILE* stream) { return is_terminal(stream) && environment("NO_COLOR").empty(); }

std::optional<std::size_t> output_width(std::FILE* stream) {
  if (is_terminal(stream)) return columns_of(stream);
  const auto width = parse_number<std::size_t>(environment("COLUMNS"));
  return width > 0U ? width : std::nullopt;
}

bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = environment(name);
    if (locale.empty()) continue;
    // The C library accepts any spelling of a codeset: UTF-8, utf8, UTF8.
    std::string spelt;
    for (const char c : locale) {
      if (c != '-') spelt += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return spelt.find("utf8") != std::string::npos;
  }
  return false;
}

void Console::warn(std::string_view line) {
  const std::string shown = in_locale(presentable(line));
  const std::scoped_lock lock(mutex_);
  const std::string_view clear = status_.empty() ? "" : kClearLine;
  write(stream_, fmt::format("{}{}\n{}", clear, shown, status_));
}

void Console::status(std::string_view line) {
  if (!terminal_ || quiet_) return;
  const std::scoped_lock lock(mutex_);
  // Some terminals wrap the line when the last column is written.
  const std::size_t columns = columns_of(stream_) - 1;
  std::string shown = results::printable(line);
  // ASCII needs more columns for some characters.
  shown =
      is_utf8_locale() ? results::clip(shown, columns) : results::ascii(shown).substr(0, columns);
  if (shown == status_) return;
  status_ = std::move(shown);
  write(stream_, fmt::format("{}{}", kClearLine, status_));
}

}  // namespace lockbench::cli
