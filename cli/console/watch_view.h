#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "results/tables/formats.h"
#include "strategies/duration.h"
#include "watch/picture.h"

namespace lockbench::cli {

/// What a watch sees, for a terminal with `lines` lines: its servers, its findings, the table of
/// families and the table of the locks that hurt most. Each part is cut to the room there is.
/// `style` says how wide the terminal is. `messages` follow the servers, as the picture hides what
/// was printed before.
std::vector<std::string> watch_view(const watch::Picture& picture, std::size_t lines,
                                    const results::TextStyle& style,
                                    const std::vector<std::string>& messages = {});

/// A watch as lines of text, without a terminal: a line for each finding when it appears and, while
/// it goes on, each ten minutes; a line when a server is lost or back, and a summary every 10 s if
/// it has changed.
class WatchLines {
 public:
  /// `tells_unseen`: also what a server's source cannot see; else the final report tells it.
  explicit WatchLines(bool tells_unseen = true) : tells_unseen_(tells_unseen) {}
  std::vector<std::string> lines(const watch::Picture& picture);

 private:
  /// Kind, store, family, endpoint.
  using FindingName = std::tuple<std::string, std::string, std::string, std::string>;
  struct Said {
    TimePoint at{}, there_at{};  ///< when it was said, and when it was last there
    std::uint64_t times = 0;
  };

  const bool tells_unseen_;
  std::map<FindingName, Said> said_;
  std::map<std::string, std::string> saw_;  ///< why it is blind, by endpoint; empty: it sees
  std::set<std::string> told_unseen_;       ///< endpoints
  TimePoint sum_up_at_ = TimePoint::min();
  std::string summary_;
};

}  // namespace lockbench::cli
