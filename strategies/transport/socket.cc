#include "strategies/transport/socket.h"

#include <poll.h>

#include <algorithm>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/transport/connecting.h"

namespace lockbench {

std::string describe(Transport::Status status, Duration timeout, Transport* transport) {
  switch (status) {
    case Transport::Status::timed_out:
      return "no answer within " + format_duration(timeout);
    case Transport::Status::stopped:
      return "stopped while waiting for the answer";
    default:
      return transport == nullptr ? "the connection was closed" : transport->why_closed();
  }
}

void wait_for_any(std::span<Watched> watched, Duration longest, const std::stop_token& stop) {
  std::vector<pollfd> polled;
  polled.reserve(watched.size());
  for (const Watched& one : watched) {
    polled.push_back({.fd = one.descriptor, .events = POLLIN, .revents = 0});
  }
  const bool known =
      std::ranges::any_of(watched, [](const auto& one) { return one.descriptor < 0; });
  if (!known) Carrier::current().poll(polled, longest, stop);
  for (std::size_t i = 0; i < watched.size(); ++i) {
    watched[i].ready = known || polled[i].revents != 0;
  }
}

std::string Connecting::too_late(Duration timeout) const {
  return "no connection within " + format_duration(timeout);
}

tl::expected<std::unique_ptr<Connecting>, std::string> begin_connecting(
    const SocketAddress& address, Duration timeout, const TlsSettings* tls) {
  return begin_connecting(address, timeout, tls, resolve);
}

tl::expected<std::unique_ptr<Transport>, std::string> connect_socket(const SocketAddress& address,
                                                                     Duration timeout,
                                                                     const std::stop_token& stop,
                                                                     const TlsSettings* tls) {
  const auto connecting = begin_connecting(address, timeout, tls);
  if (!connecting) return tl::unexpected(connecting.error());
  auto connected = (*connecting)->get(timeout, stop);
  if (!connected || *connected) return connected;
  return tl::unexpected(stop.stop_requested() ? std::string("stopped while connecting")
                                              : (*connecting)->too_late(timeout));
}

}  // namespace lockbench
