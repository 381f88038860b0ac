#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "watch/picture.h"

namespace lockbench::exporter {

/// The latest picture of a watch, for those who scrape it. Thread-safe.
class WatchMetrics {
 public:
  void show(watch::Picture picture) {
    auto latest = std::make_shared<const watch::Picture>(std::move(picture));
    const std::scoped_lock lock(mutex_);
    picture_.swap(latest);
    shown_ = true;
  }
  /// Never null; empty before the first picture.
  std::shared_ptr<const watch::Picture> read() const {
    const std::scoped_lock lock(mutex_);
    return picture_;
  }
  /// "redis://host:6379: reason" for each source that does not see; a line if there is no picture
  /// yet.
  std::vector<std::string> failing() const {
    const std::scoped_lock lock(mutex_);
    if (!shown_) return {"nothing was seen yet"};
    std::vector<std::string> lines;
    for (const watch::SourcePicture& source : picture_->sources) {
      if (!source.sees) lines.push_back(source.facts.endpoint + ": " + source.blind_reason);
    }
    return lines;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const watch::Picture> picture_ = std::make_shared<watch::Picture>();
  bool shown_ = false;
};

}  // namespace lockbench::exporter
