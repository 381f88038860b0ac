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

/// Finds the addresses of a host. The error says why there are none, without naming the host. May
/// take as long as it likes.
using Resolver = std::function<PeerAddresses(const std::string& host, int port)>;

/// The system's: in the order in which they should be tried (RFC 6724), both families.
PeerAddresses resolve(const std::string& host, int port);

/// A look-up on a thread of its own, as getaddrinfo() can neither be interrupted nor limited. When
/// nobody wants the result any more, the thread ends by itself once the resolver returns. Lookups
/// of the same host that are under way at the same time share one thread, so that many clients that
/// connect at once need no more than one. Thread-safe.
class Lookup {
 public:
  /// Under way, or known already.
  explicit Lookup(std::optional<PeerAddresses> addresses = {}) : addresses_(std::move(addresses)) {}
  /// Nothing if the addresses are not known within `longest`, or if a stop comes before.
  std::optional<PeerAddresses> get(Duration longest, const std::stop_token& stop);
  /// For whoever looks up.
  void finish(PeerAddresses addresses);

 private:
  std::mutex mutex_;
  std::optional<PeerAddresses> addresses_;
  std::vector<Event*> waiting_;  ///< one for each caller
};

/// Begins to look up; does not wait. Numeric addresses are known at once.
std::shared_ptr<Lookup> look_up(const std::string& host, int port,
                                const Resolver& resolver = resolve);

}  // namespace lockbench
