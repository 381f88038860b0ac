#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/duration.h"

namespace lockbench::loadgen {

/// The faults that a run can have.
enum class FaultKind {
  store_kill,    ///< the lock's server is killed and restarted with the data that it kept
  store_freeze,  ///< the server is paused
  node_kill,     ///< the same for some of several servers
  node_freeze,
  failover,   ///< the primary or leader is killed and another server takes over
  partition,  ///< a share of the clients' connections is blocked
  delay,      ///< every round trip takes longer
};

/// Their names, in that order, on the command line, in result files and as metric labels.
inline constexpr std::array<std::string_view, 7> kFaults = {
    "store-kill", "store-freeze", "node-kill", "node-freeze", "failover", "partition", "delay"};

std::string_view to_string(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::store_kill;
  std::string what;  ///< kind and parameter as given: "partition:0.5"
  /// From the start of the measured part.
  Duration at{};
  /// From the fault until it is healed, as asked for.
  std::optional<Duration> lasts;
  int nodes = 1;       ///< node_kill, node_freeze: how many
  double share = 0.5;  ///< partition: of the connections
  Duration delay{};    ///< delay: added to each round trip

  /// When it is healed; nothing: at the end of the run. A failover promotes the new primary at once
  /// unless it was given a length.
  std::optional<Duration> heals_at() const;
  /// "partition:0.5@2s+1s"
  std::string to_string() const;
};

/// Reads FAULT[:PARAMETER]@TIME[+D]. The error quotes it and says what is allowed.
tl::expected<Fault, std::string> parse_fault(const std::string& text);

/// Sorts faults by start. They must not overlap and must end within a run of that duration; the
/// error names the one that does not fit.
tl::expected<std::vector<Fault>, std::string> timetable(std::vector<Fault> faults,
                                                        Duration duration);

/// Whether one of them restarts servers, so that the run must expect it.
bool restarts_servers(const std::vector<Fault>& faults);

/// The servers of a run and the connections to them, on which faults are injected. One call at a
/// time, from any thread.
class FaultTarget {
 public:
  virtual ~FaultTarget() = default;

  /// The fault is in force when the call returns. Call heal() afterwards, also after an error.
  virtual tl::expected<void, std::string> inject(const Descriptor& strategy,
                                                 const Fault& fault) = 0;
  /// Returns when the fault is over and the servers are ready for the next one. Bounded by the time
  /// that servers may take to start.
  virtual tl::expected<void, std::string> heal(const Descriptor& strategy, const Fault& fault) = 0;
};

}  // namespace lockbench::loadgen
