#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "loadgen/record/histogram.h"

namespace lockbench::loadgen {

/// How long the store took to answer, by the command's name. Thread-safe.
class CommandTimes {
 public:
  /// Takes a lock: a client asks once for each name. Stays valid.
  ShardedHistogram& of(std::string_view command) {
    const std::scoped_lock lock(mutex_);
    auto& histogram = histograms_[std::string(command)];
    if (!histogram) histogram = std::make_unique<ShardedHistogram>();
    return *histogram;
  }

  /// Those that were answered at least once.
  std::map<std::string, HistogramSnapshot> snapshots() const {
    const std::scoped_lock lock(mutex_);
    std::map<std::string, HistogramSnapshot> found;
    for (const auto& [command, histogram] : histograms_) {
      HistogramSnapshot snapshot = histogram->snapshot();
      if (snapshot.count() > 0) found.emplace(command, snapshot);
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<ShardedHistogram>, std::less<>> histograms_;
};

}  // namespace lockbench::loadgen
