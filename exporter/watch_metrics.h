#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "watch/picture.h"

namespace lockbench::exporter {

/// The latest picture of a watch, for those who scrape it. Thread-safe.
class WatchMetrics {
 public:
  void show(watch::Picture picture);
  /// Never null; empty before the first picture.
  std::shared_ptr<const watch::Picture> read() const;
  /// "redis://host:6379: reason" for each source that does not see; a line if there is no picture
  /// yet.
  std::vector<std::string> failing() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const watch::Picture> picture_ = std::make_shared<watch::Picture>();
  bool shown_ = false;
};

}  // namespace lockbench::exporter
