#include "exporter/watch_metrics.h"

#include <utility>

namespace lockbench::exporter {

void WatchMetrics::show(watch::Picture picture) {
  auto latest = std::make_shared<const watch::Picture>(std::move(picture));
  const std::scoped_lock lock(mutex_);
  picture_.swap(latest);
  shown_ = true;
}

std::shared_ptr<const watch::Picture> WatchMetrics::read() const {
  const std::scoped_lock lock(mutex_);
  return picture_;
}

std::vector<std::string> WatchMetrics::failing() const {
  const std::scoped_lock lock(mutex_);
  if (!shown_) return {"nothing was seen yet"};
  std::vector<std::string> lines;
  for (const watch::SourcePicture& source : picture_->sources) {
    if (!source.sees) lines.push_back(source.facts.endpoint + ": " + source.blind_reason);
  }
  return lines;
}

}  // namespace lockbench::exporter
