#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/servers/machine.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {

inline constexpr Program kRedisSentinel{"redis-sentinel", "redis-sentinel"};

/// Three sentinels that watch one primary on loopback and promote its replica when it dies.
/// Thread-safe.
class SentinelGroup {
 public:
  /// "redis+sentinel://user:secret@127.0.0.1:PORT,.../name"
  std::string url() const;
  Server& sentinel(std::size_t index) { return *sentinels_.at(index); }
  /// Waits until all of them regard the server on this port as the master.
  tl::expected<void, std::string> await_master(std::uint16_t port,
                                               std::chrono::milliseconds within);

 private:
  friend tl::expected<std::unique_ptr<SentinelGroup>, std::string> start_sentinels(
      Testbed& testbed, std::uint16_t primary, const TlsFiles* tls);
  SentinelGroup() = default;

  std::vector<std::unique_ptr<Server>> sentinels_;
};

/// `primary`: its port, or that of a proxy in front of it that all use; one replica follows it.
/// `tls`: that the sentinels and the servers speak; null: none.
/// Returns when all sentinels know each other, the primary and the replica; waits for 20 s at most.
tl::expected<std::unique_ptr<SentinelGroup>, std::string> start_sentinels(
    Testbed& testbed, std::uint16_t primary, const TlsFiles* tls = nullptr);

}  // namespace lockbench::testbed
