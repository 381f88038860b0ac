#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a testbed and its supervisor say to each other, one line a message, fields parted by tabs.
/// `id` is chosen by the testbed, rises, and names the request; that of a start also names the
/// process, so that a recycled pid is never mistaken for it.
///
///   start id log folder user stop_signal argv...   → started id pid   | failed id reason
///   signal id process signo                        → ok id            | failed id reason
///   stop id process grace_ms                       → ok id            | failed id reason
///                              at any time:          exited process wait_status
///
/// `stop` sends the process's stop signal, and SIGKILL when the grace is over; the end itself is
/// told by `exited`. Signals go to the process's whole group.
namespace lockbench::testbed::wire {

/// The longest line either side accepts; a longer one ends the conversation.
inline constexpr std::size_t kMaxLine = std::size_t{1} << 20;

/// A line with its newline; tabs, newlines and percent signs inside fields are escaped.
std::string encode(const std::vector<std::string>& fields);

/// The fields of a line without its newline.
std::vector<std::string> decode(std::string_view line);

/// Cuts a stream of bytes into lines.
class LineBuffer {
 public:
  /// False when a line is longer than kMaxLine.
  bool append(std::string_view bytes);
  /// The next whole line without its newline, if there is one.
  std::optional<std::string> next();

 private:
  std::string bytes_;
};

}  // namespace lockbench::testbed::wire
