#include "cli/console/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace lockbench::cli {

ScreenSize screen_size(int terminal) {
  winsize size{};
  if (ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .lines = size.ws_row};
}

bool write_to(int terminal, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(terminal, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
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
