#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/servers/programs.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

inline constexpr Program kRedisSentinel{"redis-sentinel", "redis-sentinel"};

struct SentinelOptions {
  std::uint16_t primary = 0;  ///< its port, or that of a proxy in front of it that all use
  int replicas = 1;           ///< how many follow it
  int sentinels = 3;          ///< a majority of which must agree that it is down
  std::string name = "lock";  ///< of the master, as clients ask for it
  /// Silence after which the primary counts as down. Short, but longer than a busy machine's
  /// pauses.
  std::chrono::milliseconds down_after{1000};
};

/// Sentinels that watch one primary on loopback and promote a replica when it dies.
/// Thread-safe.
class SentinelGroup {
 public:
  /// "redis+sentinel://127.0.0.1:PORT,.../name"
  std::string url() const;
  Server& sentinel(std::size_t index) { return *sentinels_.at(index); }
  /// Waits until all of them regard the server on this port as the master.
  tl::expected<void, std::string> await_master(std::uint16_t port,
                                               std::chrono::milliseconds within);

 private:
  friend tl::expected<std::unique_ptr<SentinelGroup>, std::string> start_sentinels(
      Testbed& testbed, const SentinelOptions& options);
  explicit SentinelGroup(std::string name) : name_(std::move(name)) {}

  const std::string name_;
  std::vector<std::unique_ptr<Server>> sentinels_;
};

/// Returns when all of them know each other, the primary and its replicas; waits for 20 s at most.
tl::expected<std::unique_ptr<SentinelGroup>, std::string> start_sentinels(
    Testbed& testbed, const SentinelOptions& options);

}  // namespace lockbench::testbed
