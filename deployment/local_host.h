#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "strategies/duration.h"
#include "testbed/proxy/proxy.h"
#include "testbed/servers/authority.h"
#include "testbed/servers/testbed.h"

namespace lockbench::deployment {

/// This machine, where private servers and proxies in front of them are started. Outlives its
/// servers. Thread-safe.
class LocalHost {
 public:
  /// `tls`: with an authority whose certificates servers have, and which clients trust.
  static tl::expected<std::unique_ptr<LocalHost>, std::string> open(bool tls = false);

  testbed::Testbed& testbed() { return *testbed_; }
  testbed::ProxyPool& proxies() { return *proxies_; }
  /// For all servers. Null: they speak no TLS.
  const testbed::TlsFiles* tls() const { return tls_ ? &*tls_ : nullptr; }
  /// A proxy in front of the server on this port, which adds `rtt` to each round trip. Throws
  /// Failure if it cannot be started.
  std::unique_ptr<testbed::Proxy> line_to(std::uint16_t port, Duration rtt = {});

 private:
  LocalHost() = default;

  std::optional<testbed::TlsFiles> tls_;
  std::unique_ptr<testbed::Testbed> testbed_;
  std::unique_ptr<testbed::ProxyPool> proxies_;
};

/// The delay each way of a line that adds `rtt` to a round trip: rounded up.
inline Duration each_way(Duration rtt) { return (rtt + Duration(1)) / 2; }

}  // namespace lockbench::deployment
