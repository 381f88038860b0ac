#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "exporter/facts.h"
#include "exporter/listen_address.h"
#include "exporter/push_target.h"
#include "exporter/run_metrics.h"

namespace lockbench::exporter {

/// How many HTTP connections are held at most.
inline constexpr unsigned kMostConnections = 1280;

/// Whether this build can export; the error says what it lacks.
tl::expected<void, std::string> available();

/// The metrics of one process, served over HTTP and pushed.
class Exporter {
 public:
  /// Every series of these strategies is there from now on, at 0. Nothing is served yet.
  /// `nodes`: of locks on a quorum.
  static std::unique_ptr<Exporter> make(const std::vector<const Descriptor*>& strategies, int nodes,
                                        const Facts& facts);
  virtual ~Exporter() = default;

  virtual RunMetrics& metrics() = 0;
  /// Serves /metrics, /-/healthy and a front page until the end of this object. Returns where; the
  /// error names the address. Signals that a thread must not take are to be blocked before.
  virtual tl::expected<ListenAddress, std::string> serve(const ListenAddress& address,
                                                         unsigned connections) = 0;
  /// Once, to a Pushgateway. Blocks, but not for long.
  virtual tl::expected<void, std::string> push(const PushTarget& target) = 0;
};

}  // namespace lockbench::exporter
