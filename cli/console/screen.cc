#include "cli/console/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

namespace lockbench::cli {
namespace {

// Alternate screen, no cursor, no wrapping: a wide character must not shift the lines below.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
// What may end the process: crashes, Ctrl-\, and the second of the signals that stop it.
constexpr std::array kDeadly = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL, SIGABRT,
                                SIGQUIT, SIGINT, SIGTERM, SIGHUP};

/// For the signal handler, which can reach nothing else.
struct Saved {
  volatile std::sig_atomic_t open = 0;
  int in = -1, out = -1;
  termios settings{};
  std::array<struct sigaction, kDeadly.size()> actions{};
};
Saved saved;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Calls only what a signal handler may call.
void give_back() {
  if (saved.open == 0) return;
  saved.open = 0;
  static_cast<void>(write_all(saved.out, kLeave));
  static_cast<void>(tcsetattr(saved.in, TCSANOW, &saved.settings));
}

/// The signal kills as it would have: its action is the default one again.
void give_back_and_die(int number) {
  give_back();
  static_cast<void>(raise(number));
}

/// Those that are ignored, as SIGHUP is under nohup, stay so.
void catch_deadly() {
  for (std::size_t i = 0; i < kDeadly.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = give_back_and_die;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(kDeadly[i], nullptr, &saved.actions[i]);
    if (saved.actions[i].sa_handler != SIG_IGN) sigaction(kDeadly[i], &action, nullptr);
  }
}

void catch_no_more() {
  for (std::size_t i = 0; i < kDeadly.size(); ++i) {
    if (saved.actions[i].sa_handler != SIG_IGN) sigaction(kDeadly[i], &saved.actions[i], nullptr);
  }
}

}  // namespace

std::unique_ptr<Screen> Screen::open(int in, int out) {
  if (saved.open != 0 || isatty(in) != 1 || isatty(out) != 1) return nullptr;
  if (tcgetattr(in, &saved.settings) != 0) return nullptr;
  termios raw = saved.settings;
  // Ctrl-C stays a signal. Ctrl-Z and Ctrl-S would leave the screen as it is, and stop drawing.
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON);
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  saved.in = in;
  saved.out = out;
  saved.open = 1;
  catch_deadly();
  std::unique_ptr<Screen> screen(new Screen(in, out));
  if (tcsetattr(in, TCSANOW, &raw) != 0 || !write_all(out, kEnter)) return nullptr;
  return screen;
}

Screen::~Screen() {
  give_back();
  catch_no_more();
}

ScreenSize Screen::size() const {
  winsize size{};
  if (ioctl(out_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .lines = size.ws_row};
}

bool Screen::draw(std::span<const std::string> lines) { return write_all(out_, frame(lines)); }

std::string Screen::typed(Duration within) {
  using Milliseconds = std::chrono::milliseconds;
  const int timeout = static_cast<int>(
      std::clamp<std::int64_t>(std::chrono::ceil<Milliseconds>(within).count(), 0, 1000));
  pollfd event{keys_ ? in_ : -1, POLLIN, 0};
  if (poll(&event, 1, timeout) <= 0) return "";
  std::array<char, 64> buffer{};
  const ssize_t got = ::read(in_, buffer.data(), buffer.size());
  if (got > 0) return {buffer.data(), static_cast<std::size_t>(got)};
  keys_ = got < 0 && (errno == EINTR || errno == EAGAIN);
  return "";
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
