#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "strategies/carrier.h"
#include "strategies/transport/plain_socket.h"
#include "strategies/transport/socket.h"
#include "strategies/transport/socket_race.h"
#include "strategies/transport/tls_transport.h"

namespace lockbench {
namespace {

using Connected = tl::expected<std::unique_ptr<Transport>, std::string>;

PeerAddress unix_address(const std::string& path) {
  PeerAddress address;
  sockaddr_un filled{};
  filled.sun_family = AF_UNIX;
  // What is too long is refused where the URL is read; its last byte stays zero.
  path.copy(filled.sun_path, sizeof filled.sun_path - 1);
  std::memcpy(&address.storage, &filled, sizeof filled);
  address.size = sizeof filled;
  return address;
}

/// Looks the name up, connects, and does the TLS handshake, each in its turn.
class SocketConnecting : public Connecting {
 public:
  SocketConnecting(const SocketAddress& address, const Timeouts& timeouts,
                   std::shared_ptr<const TlsContext> context, const Resolver& resolver)
      : host_(address.host),
        tcp_(address.path.empty()),
        timeouts_(timeouts),
        context_(std::move(context)) {
    if (tcp_) {
      lookup_ = look_up(address.host, address.port, resolver);
    } else {
      race_.emplace(std::vector<PeerAddress>{unix_address(address.path)});
    }
  }

  Connected get(Duration longest, const std::stop_token& stop) override {
    const TimePoint end = Carrier::current().now() + longest;
    const auto left = [&] { return std::max(end - Carrier::current().now(), Duration::zero()); };
    if (!race_) {
      auto addresses = lookup_->get(longest, stop);
      if (!addresses) return nullptr;
      if (!*addresses) return tl::unexpected(std::move(addresses->error()));
      if ((*addresses)->empty()) return tl::unexpected<std::string>("its name has no address");
      race_.emplace(std::move(**addresses));
    }
    if (!shaking_) {
      auto plain = race(left(), stop);
      if (!plain || !*plain || !context_) return plain;
      auto tls = TlsTransport::make(*std::move(plain), context_, host_);
      if (!tls) return tl::unexpected(std::move(tls.error()));
      shaking_ = *std::move(tls);
    }
    const auto done = shaking_->shake_hands(left(), stop);
    if (!done) return tl::unexpected(done.error());
    if (!*done) return nullptr;
    return std::move(shaking_);
  }

  std::string too_late(Duration timeout) const override {
    return Connecting::too_late(timeout) +
           (shaking_ ? ": no answer to the TLS handshake: the server may not speak TLS"
            : race_  ? ""
                     : ": its name is still being looked up");
  }

 private:
  Connected race(Duration longest, const std::stop_token& stop) {
    const auto fd = race_->get(longest, stop);
    if (!fd) return tl::unexpected(fd.error());
    if (*fd < 0) return nullptr;
    return make_plain_socket(OwnedSocket(*fd), tcp_, timeouts_);
  }

  const std::string host_;
  const bool tcp_;
  const Timeouts timeouts_;
  const std::shared_ptr<const TlsContext> context_;  ///< null: without TLS
  std::shared_ptr<Lookup> lookup_;
  std::optional<SocketRace> race_;
  std::unique_ptr<TlsTransport> shaking_;
};

}  // namespace

tl::expected<std::unique_ptr<Connecting>, std::string> begin_connecting(
    const SocketAddress& address, const Timeouts& timeouts, const TlsSettings* tls,
    const Resolver& resolver) {
  std::shared_ptr<const TlsContext> context;
  if (tls != nullptr) {
    auto shared = TlsContext::share(*tls);
    if (!shared) return tl::unexpected(std::move(shared.error()));
    context = *std::move(shared);
  }
  return std::make_unique<SocketConnecting>(address, timeouts, std::move(context), resolver);
}

}  // namespace lockbench
