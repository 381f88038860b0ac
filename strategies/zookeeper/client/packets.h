#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/transport/socket.h"

namespace lockbench::zookeeper {

/// A connection that carries packets: each is sent behind its length, in four bytes. One thread at
/// a time in each direction.
class Packets {
 public:
  /// How long one wait in the transport's own way lasts, on a thread: so soon a stop is noticed,
  /// which would make the transport unusable.
  static constexpr Duration kPace = std::chrono::milliseconds(20);
  /// Larger ones are not accepted. A list of 20'000 waiters takes 1 MiB.
  static constexpr std::size_t kLargest = std::size_t{4} << 20U;

  explicit Packets(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  /// False: the connection is broken. On a shared carrier it does not wait, as its session holds a
  /// mutex meanwhile.
  bool send(std::string_view framed);
  /// Waits for bytes, for at most `longest`; looks only, if that is zero. The stop is for shared
  /// carriers only: `stopped` leaves the connection as it was.
  Transport::Status receive(Duration longest, const std::stop_token& stop = {});
  /// The next whole packet that was received, without its length. Valid until the next receive().
  /// The error says that the other side does not send packets.
  tl::expected<std::optional<std::string_view>, std::string> next();

  /// After a receive() that found it closed.
  std::string why_closed() { return transport_->why_closed(); }
  int descriptor() const { return transport_->descriptor(); }

 private:
  /// For a server that does not read.
  static constexpr Duration kPatience = std::chrono::milliseconds(500);

  std::unique_ptr<Transport> transport_;
  std::string received_;
  std::size_t read_ = 0;  ///< so much of it was handed out
};

}  // namespace lockbench::zookeeper
