#include "strategies/transport/socket.h"

#include <algorithm>

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

std::string Connecting::too_late(Duration timeout) const {
  return "no connection within " + format_duration(timeout);
}

tl::expected<std::unique_ptr<Transport>, std::string> connect_socket(const SocketAddress& address,
                                                                     const Timeouts& timeouts,
                                                                     const std::stop_token& stop,
                                                                     const TlsSettings* tls) {
  const auto connecting = begin_connecting(address, timeouts, tls);
  if (!connecting) return tl::unexpected(connecting.error());
  auto connected = stop.stop_requested()
                       ? (*connecting)->get(time_to_connect_after_stop(timeouts), {})
                       : (*connecting)->get(timeouts.answer, stop);
  if (!connected || *connected) return connected;
  return tl::unexpected(stop.stop_requested() ? std::string("stopped while connecting")
                                              : (*connecting)->too_late(timeouts.answer));
}

}  // namespace lockbench
