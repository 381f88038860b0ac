#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "loadgen/fibers/pool.h"
#include "loadgen/record/certificate.h"
#include "loadgen/record/machine.h"
#include "loadgen/run/runner.h"

namespace lockbench::loadgen {

/// What one run uses of this machine and of its private servers. For one thread.
class ResourceMeter {
 public:
  /// All must outlive it. `pool`: the threads of the clients; null if they run beside the runner.
  ResourceMeter(const RunPlan& plan, const Descriptor& strategy,
                const std::unique_ptr<fibers::Pool>& pool)
      : plan_(plan), strategy_(strategy), pool_(pool) {}

  /// Whether the lock or the counter is on private servers, which share this machine.
  bool has_private_servers() const;

  void load_begins();
  void load_ends();
  /// No client uses a server any more.
  void drained();

  /// CPU time of the generator, the private servers and the machine during the load.
  void add_to(RunEvidence& evidence) const;
  /// CPU time of the private servers of this lock, until drained; nothing if it has none, or if
  /// they restarted.
  std::optional<double> server_cpu_seconds() const;
  /// Through proxies, until drained; nothing without them.
  std::optional<std::uint64_t> bytes() const;

 private:
  struct Reading {
    double own_cpu = 0;
    std::vector<Duration> threads;  ///< of the pool
    std::optional<double> private_cpu;
    MachineReading machine;
  };
  Reading read() const;
  bool is_private(std::string_view set) const;
  bool has_only_private_servers() const;
  std::optional<double> read_servers() const;

  const RunPlan& plan_;
  const Descriptor& strategy_;
  const std::unique_ptr<fibers::Pool>& pool_;
  Reading at_begin_, at_end_;
  std::optional<double> servers_at_begin_, servers_when_drained_;
  std::uint64_t bytes_at_begin_ = 0, bytes_when_drained_ = 0;
};

}  // namespace lockbench::loadgen
