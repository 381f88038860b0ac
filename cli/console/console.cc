#include "cli/console/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/console/publish.h"
#include "cli/options/option.h"
#include "results/tables/text.h"
#include "strategies/number.h"

namespace lockbench::cli {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";
constexpr std::size_t kMostLatest = 3;

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

std::optional<std::size_t> output_width(std::FILE* stream) {
  if (is_terminal(stream)) return screen_size(fileno(stream)).columns;
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

void Console::note(std::string_view line) { event("note", {{"text", std::string(line)}}, line); }

void Console::warn(std::string_view line) {
  event("warning", {{"text", std::string(line)}});
  write_line(line);
}

void Console::event(const std::string& name, const Events::Fields& fields, std::string_view line) {
  if (events_ && !events_->write(name, fields)) write_line("--events: can no longer be written");
  if (!quiet_ && !line.empty()) write_line(line);
}

void Console::write_line(std::string_view line) {
  const std::string shown = in_locale(presentable(line));
  const std::scoped_lock lock(mutex_);
  const std::string_view clear = status_.empty() ? "" : kClearLine;
  write(stream_, fmt::format("{}{}\n{}", clear, shown, status_));
  latest_.push_back(shown);
  if (latest_.size() > kMostLatest) latest_.pop_front();
}

std::vector<std::string> Console::latest() const {
  const std::scoped_lock lock(mutex_);
  return {latest_.begin(), latest_.end()};
}

void Console::status(std::string_view line) {
  if (!terminal_ || quiet_) return;
  const std::scoped_lock lock(mutex_);
  // Some terminals wrap the line when the last column is written.
  const std::size_t columns = std::max<std::size_t>(screen_size(fileno(stream_)).columns, 1) - 1;
  std::string shown = results::printable(line);
  // ASCII needs more columns for some characters.
  shown =
      is_utf8_locale() ? results::clip(shown, columns) : results::ascii(shown).substr(0, columns);
  if (shown == status_) return;
  status_ = std::move(shown);
  write(stream_, fmt::format("{}{}", kClearLine, status_));
}

tl::expected<std::unique_ptr<Events>, std::string> Events::open(const std::string& target) {
  constexpr int kFirst = 3;
  const auto descriptor = parse_number<int>(target);
  std::FILE* file = nullptr;
  if (target == "-") {
    file = stdout;
  } else if (descriptor) {
    const bool usable = *descriptor >= kFirst && fcntl(*descriptor, F_GETFD) >= 0;
    // Private servers must not inherit it: its reader would wait for them too.
    if (usable && fcntl(*descriptor, F_SETFD, FD_CLOEXEC) == 0) file = fdopen(*descriptor, "w");
    if (file == nullptr) {
      return tl::unexpected(target +
                            " is not a descriptor to write to: give -, a file, or an open "
                            "descriptor above 2");
    }
  } else {
    file = std::fopen(target.c_str(), "we");
    if (file == nullptr) return tl::unexpected(target + ": " + std::strerror(errno));
  }
  return std::unique_ptr<Events>(new Events(file));
}

void Events::Close::operator()(std::FILE* file) const noexcept {
  if (file != stdout) static_cast<void>(std::fclose(file));
}

bool Events::write(const std::string& event, const Fields& fields) {
  nlohmann::ordered_json line{{"event", event},
                              {"time", rfc3339(std::chrono::system_clock::now())}};
  for (const auto& [name, value] : fields) {
    nlohmann::ordered_json& field = line[name];
    std::visit([&](const auto& plain) { field = plain; }, value);
  }
  // A strategy's message may quote bytes that are not UTF-8.
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const std::scoped_lock lock(mutex_);
  if (failed_) return true;
  failed_ = std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
            std::fflush(file_.get()) != 0;
  return !failed_;
}

ScreenSize screen_size(int terminal) {
  winsize size{};
  if (ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .lines = size.ws_row};
}

bool write_to(int terminal, std::string_view text) {
  constexpr std::chrono::milliseconds kLongest(200);
  constexpr std::size_t kPiece = 256;  // fits where poll sees room
  // Reopened, as O_NONBLOCK would apply to all who share the descriptor, such as the shell.
  const int own = ::open(fmt::format("/proc/self/fd/{}", terminal).c_str(),
                         O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  pollfd target{.fd = own >= 0 ? own : terminal, .events = POLLOUT, .revents = 0};
  const auto give_up_at = std::chrono::steady_clock::now() + kLongest;
  bool is_there = true;
  while (is_there && !text.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        give_up_at - std::chrono::steady_clock::now());
    if (poll(&target, 1, std::max(0, static_cast<int>(left.count()))) == 0) break;
    const ssize_t written = ::write(target.fd, text.data(), std::min(text.size(), kPiece));
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    is_there = written > 0 || (written < 0 && (errno == EINTR || errno == EAGAIN));
  }
  if (own >= 0) ::close(own);
  return is_there;
}

std::string frame(std::span<const std::string> lines) {
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\r\n";
    text += lines[i] + "\x1b[K";
  }
  return text + "\x1b[J";
}

}  // namespace lockbench::cli
