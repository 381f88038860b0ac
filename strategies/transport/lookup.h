#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "strategies/duration.h"

namespace lockbench {

class Event;

/// An address to connect to, of any family.
struct PeerAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  /// "127.0.0.1", "::1"
  std::string display() const;
};
using PeerAddresses = tl::expected<std::vector<PeerAddress>, std::string>;

/// Finds the addresses of a host; may take any time. The error says why there are none, without
/// naming the host.
using Resolver = std::function<PeerAddresses(const std::string& host, int port)>;

/// The system's: in the order in which they should be tried (RFC 6724), both families.
PeerAddresses resolve(const std::string& host, int port);

/// A look-up on its own thread, as getaddrinfo() can neither be interrupted nor limited. An
/// unwanted look-up ends once the resolver returns. Concurrent look-ups of one host share a thread,
/// so that many clients that connect together need only one. Thread-safe.
class Lookup {
 public:
  /// Under way, or done if there are addresses.
  explicit Lookup(std::optional<PeerAddresses> addresses = {}) : addresses_(std::move(addresses)) {}
  /// Nothing if the addresses are not known within `longest`, or before a stop.
  std::optional<PeerAddresses> get(Duration longest, const std::stop_token& stop);
  /// Called by the thread that looks up.
  void finish(PeerAddresses addresses);

 private:
  std::mutex mutex_;
  std::optional<PeerAddresses> addresses_;
  std::vector<Event*> waiting_;  ///< one for each caller
};

/// Begins to look up; does not wait. Numeric addresses are known immediately.
std::shared_ptr<Lookup> look_up(const std::string& host, int port,
                                const Resolver& resolver = resolve);

}  // namespace lockbench
