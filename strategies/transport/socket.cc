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
  const bool stopped = stop.stop_requested();
  const Duration longest = stopped ? time_to_connect_after_stop(timeouts) : timeouts.answer;
  const auto connecting = begin_connecting(address, timeouts, longest, tls);
  if (!connecting) return tl::unexpected(connecting.error());
  auto connected = (*connecting)->get(longest, stopped ? std::stop_token() : stop);
  if (!connected || *connected) return connected;
  return tl::unexpected(stop.stop_requested() ? std::string("stopped while connecting")
                                              : (*connecting)->too_late(timeouts.answer));
}

}  // namespace lockbench
