#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "strategies/duration.h"
#include "strategies/redis/client/endpoint.h"

namespace lockbench::redis {

/// The bytes below the protocol: the seam at which TLS, or a network that only exists in a
/// simulation, can take the place of a socket. One thread at a
/// time in each direction.
class Transport {
 public:
  enum class Status { ok, timed_out, stopped, closed };

  struct Received {
    Status status = Status::closed;
    std::size_t bytes = 0;
  };

  virtual ~Transport() = default;
  /// Sends everything within the timeout, or fails.
  virtual Status send(std::string_view bytes, Duration timeout) = 0;
  /// Waits for at least one byte. A stop ends the wait within 100 ms, but leaves an answer that is
  /// on its way some time to arrive.
  virtual Received receive(std::span<char> buffer, Duration timeout,
                           const std::stop_token& stop) = 0;
  /// False once a stop has interrupted it: fit for the answers that are still to come, and no more.
  virtual bool usable() const = 0;
  /// To be polled for input.
  virtual int descriptor() const = 0;
};

/// Why a transport has not done what it was asked for within the timeout, in words.
std::string describe(Transport::Status status, Duration timeout);

/// A TCP (TCP_NODELAY) or unix socket on its way to being connected.
class Connecting {
 public:
  virtual ~Connecting() = default;
  /// Null if it is not connected within `longest`. The error says why it never will be, without the
  /// endpoint. Not to be called again once it has given something.
  virtual tl::expected<std::unique_ptr<Transport>, std::string> get(
      Duration longest, const std::stop_token& stop) = 0;
};

/// Does not wait. The socket is made for waits of up to `timeout`.
tl::expected<std::unique_ptr<Connecting>, std::string> begin_connecting(const Endpoint& endpoint,
                                                                        Duration timeout);

/// The same, waited for. The error says why there is none, without the endpoint.
tl::expected<std::unique_ptr<Transport>, std::string> connect_socket(const Endpoint& endpoint,
                                                                     Duration timeout,
                                                                     const std::stop_token& stop);

}  // namespace lockbench::redis
