#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/fibers/pool.h"
#include "loadgen/run/workload.h"
#include "strategies/carrier.h"

namespace lockbench::loadgen {

/// What clients run on: fibers of a few threads, or a thread each.
enum class ClientsOn { fibers, threads };

std::string_view to_string(ClientsOn clients_on);

/// So many clients of one process. A thread answers a single client sooner. Several clients on
/// fibers wake each other without the kernel.
constexpr ClientsOn what_clients_run_on(int clients) {
  return clients > 1 ? ClientsOn::fibers : ClientsOn::threads;
}

/// The threads of clients: one of its own for each, a few that fibers share, or the one of a runner
/// that is a fiber itself. Outlives whatever runs on it.
class ClientThreads {
 public:
  ClientThreads() = default;  ///< fibers beside the caller if that is one, else a thread for each
  /// Threads that fibers share. The error says why they cannot be had.
  static tl::expected<ClientThreads, std::string> of_fibers(int threads);

  /// Runs the body of client number `client`. Thread-safe. Clients whose numbers are equal modulo
  /// the number of threads share one.
  tl::expected<std::unique_ptr<Task>, std::string> start(int client, Carrier::Body body,
                                                         Carrier::OnFailure on_failure);

  /// CPU time so far of each thread that clients share; empty if none do. Thread-safe.
  std::vector<Duration> cpu_times() const;
  /// The most that any fiber has used of its stack; nothing on threads.
  std::optional<std::size_t> stack_high_water_bytes() const;

 private:
  std::unique_ptr<fibers::Pool> pool_;  ///< of the threads that they share; may be null
};

/// How many threads the fibers of this load share: as many as asked for, otherwise one for each
/// core, but no more than clients. `beside_servers`: private servers on this machine need a core,
/// too.
int generator_threads(const Workload& workload, bool beside_servers);

}  // namespace lockbench::loadgen
