#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <variant>

#include "exporter/addresses.h"
#include "exporter/run_metrics.h"
#include "exporter/watch_metrics.h"

namespace lockbench::exporter {

/// The highest number of HTTP connections.
inline constexpr unsigned kMostConnections = 1280;

/// Whether this build can export; the error says what is missing.
tl::expected<void, std::string> available();

using Metrics =
    std::variant<std::shared_ptr<const RunMetrics>, std::shared_ptr<const WatchMetrics>>;

/// The metrics of one process, served over HTTP and pushed.
class Exporter {
 public:
  /// Nothing is served yet. Null if not available(). Of runs: all series of their strategies exist
  /// from now on, at 0.
  static std::unique_ptr<Exporter> make(Metrics metrics, const Facts& facts);
  virtual ~Exporter() = default;

  /// Serves /metrics, /-/healthy, /-/ready and a front page as long as this object lives. Returns
  /// the address in use; the error names the address. Block signals that its thread must not handle
  /// before the call.
  virtual tl::expected<ListenAddress, std::string> serve(const ListenAddress& address,
                                                         unsigned connections) = 0;
  /// Pushes once to a Pushgateway, as job "lockbench" of this host's instance, replacing earlier
  /// pushes. Gives up after 10 s. The error names the gateway, without secrets.
  virtual tl::expected<void, std::string> push(const PushTarget& target) = 0;
};

}  // namespace lockbench::exporter
