#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "strategies/duration.h"
#include "watch/picture.h"

namespace lockbench::cli {

// A watch in words, for the screen and for lines of text.

/// "redis redis://h:6379: CLIENT TRACKING, counts at least; waiters: LLEN of queues"
std::string source_text(const watch::SourcePicture& source);

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
