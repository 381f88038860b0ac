#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "exporter/http_endpoint.h"
#include "exporter/run_metrics.h"
#include "watch/picture.h"

namespace lockbench::exporter {

/// Whether this build can export; the error says what is missing.
tl::expected<void, std::string> available();

/// The latest picture of a watch, for scrapes. Thread-safe.
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
  /// "redis://host:6379: reason" for each blind source; one line if there is no picture yet.
  std::vector<std::string> failing() const {
    const std::scoped_lock lock(mutex_);
    if (!shown_) return {"nothing was seen yet"};
    std::vector<std::string> lines;
    for (const watch::SourcePicture& source : picture_->sources) {
      if (source.sees) continue;
      // The reason of a failed command begins with the address.
      const std::string& endpoint = source.facts.endpoint;
      const std::size_t scheme = endpoint.find("://");
      const std::string address = endpoint.substr(scheme == std::string::npos ? 0 : scheme + 3);
      const bool named = source.blind_reason.starts_with(address);
      lines.push_back(
          (named ? endpoint.substr(0, endpoint.size() - address.size()) : endpoint + ": ") +
          source.blind_reason);
    }
    return lines;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const watch::Picture> picture_ = std::make_shared<watch::Picture>();
  bool shown_ = false;
};

using Metrics =
    std::variant<std::shared_ptr<const RunMetrics>, std::shared_ptr<const WatchMetrics>>;

/// Serves /metrics, /-/healthy, /-/ready and a front page, as long as the endpoint lives. For runs,
/// all series of their strategies exist from now on, at 0. The error names the address. Before the
/// call, block the signals that its thread must not handle. Needs available().
tl::expected<std::unique_ptr<HttpEndpoint>, std::string> serve(Metrics metrics, Facts facts,
                                                               const ListenAddress& address);

}  // namespace lockbench::exporter
