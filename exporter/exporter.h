#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "exporter/listen_address.h"
#include "exporter/push_target.h"
#include "exporter/run_metrics.h"

namespace lockbench::exporter {

/// The highest number of HTTP connections.
inline constexpr unsigned kMostConnections = 1280;

/// Whether this build can export; the error says what is missing.
tl::expected<void, std::string> available();

/// The metrics of one process, served over HTTP and pushed.
class Exporter {
 public:
  /// All series of these strategies exist from now on, at 0. Nothing is served yet. `nodes`: how
  /// many a quorum has. Null if not available().
  static std::unique_ptr<Exporter> make(const std::vector<const Descriptor*>& strategies, int nodes,
                                        const Facts& facts);
  virtual ~Exporter() = default;

  virtual RunMetrics& metrics() = 0;
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
