#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "strategies/duration.h"
#include "watch/picture.h"

namespace lockbench::cli {

// A watch in words, for the screen and for lines of text.

/// "3.2 s"; "–" for nothing.
std::string duration_text(const std::optional<Duration>& duration);
/// "≥12" or "~12" where it is not exact; 0 is plain.
std::string count_text(std::uint64_t count, watch::Accuracy accuracy);
/// "redis redis://h:6379: CLIENT TRACKING, counts at least; waiters: LLEN of queues"
std::string source_text(const watch::SourcePicture& source);
/// "expired: redis lock:order:*: 12 expired under their holders"
std::string finding_text(const watch::Finding& finding);
/// What is wrong with a lock now, in a word or two; empty: nothing.
std::string_view trouble_of(const watch::LockPicture& lock);

/// A watch as lines of text, for where there is no terminal: a line for each finding when it
/// appears, one when a server is lost or back, and a summary every 10 s. Not thread-safe.
class WatchLines {
 public:
  std::vector<std::string> lines(const watch::Picture& picture);

 private:
  /// Kind, store, family, endpoint.
  using FindingName = std::tuple<watch::Finding::Kind, std::string, std::string, std::string>;

  std::map<FindingName, TimePoint> said_;  ///< when it was last there
  std::map<std::string, bool> saw_;        ///< by endpoint
  std::optional<TimePoint> summed_up_;
};

}  // namespace lockbench::cli
