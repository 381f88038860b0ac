#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "strategies/duration.h"
#include "watch/picture.h"

namespace lockbench::cli {

/// "2 families: 2 held, 5 waiting, ..."; names the worst lock.
std::string summary_of(const watch::Picture& picture);

/// A watch as lines of text: a line for each finding when it appears and, while it goes on, each
/// ten minutes; a line when a server is lost or back, and a summary every 10 s if it has changed.
class WatchLines {
 public:
  /// `tells_unseen`: also what a server's source cannot see; else the final report tells it.
  /// Without `sums_up`, summary_of() is shown in another way.
  explicit WatchLines(bool tells_unseen = true, bool sums_up = true)
      : tells_unseen_(tells_unseen), sums_up_(sums_up) {}
  std::vector<std::string> lines(const watch::Picture& picture);

 private:
  /// Kind, store, family, endpoint.
  using FindingName = std::tuple<std::string, std::string, std::string, std::string>;
  struct Said {
    TimePoint at{}, there_at{};  ///< when it was said, and when it was last there
    std::uint64_t times = 0;
  };

  const bool tells_unseen_, sums_up_;
  std::map<FindingName, Said> said_;
  std::map<std::string, std::string> saw_;  ///< why it is blind, by endpoint; empty: it sees
  TimePoint sum_up_at_ = TimePoint::min();
  std::string summary_;
};

}  // namespace lockbench::cli
