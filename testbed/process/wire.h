#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The protocol between a testbed and its supervisor: one line per message, fields separated by
/// tabs. The testbed numbers its requests with a rising `id`. The id of a start also identifies the
/// process, as pids are reused.
///
///   start id log folder user stop_signal argv...   → started id pid   | failed id reason
///   signal id process signo                        → ok id            | failed id reason
///   stop id process grace_ms                       → ok id            | failed id reason
///                              at any time:          exited process
///
/// `stop` sends the process's stop signal, and SIGKILL after the grace; `exited` reports the end.
/// Signals go to the process group.
namespace lockbench::testbed::wire {

/// The longest line that either side accepts; a longer one closes the connection.
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
