#pragma once

#include <cstddef>
#include <map>
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

/// A watch as lines of text, without a terminal: a line for each finding when it appears, a line
/// when a server is lost or back, and a summary every 10 s if it has changed.
class WatchLines {
 public:
  std::vector<std::string> lines(const watch::Picture& picture);

 private:
  /// Kind, store, family, endpoint.
  using FindingName = std::tuple<std::string, std::string, std::string, std::string>;

  std::map<FindingName, TimePoint> said_;  ///< when the finding was last there
  std::map<std::string, bool> saw_;        ///< by endpoint
  TimePoint sum_up_at_ = TimePoint::min();
  std::string summary_;
};

}  // namespace lockbench::cli
