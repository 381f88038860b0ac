#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "strategies/duration.h"
#include "strategies/redis/client/endpoint.h"

namespace lockbench::redis {

/// Carries the protocol's bytes. TLS or a simulated network can replace the socket here. One thread
/// at a time in each direction.
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
  /// Waits for at least one byte. A stop ends the wait within 100 ms, but gives an answer under way
  /// some time to arrive.
  virtual Received receive(std::span<char> buffer, Duration timeout,
                           const std::stop_token& stop) = 0;
  /// False after a stop has interrupted it: it still receives answers under way, but nothing else.
  virtual bool usable() const = 0;
  /// To poll for input.
  virtual int descriptor() const = 0;
};

/// The failure in words.
std::string describe(Transport::Status status, Duration timeout);

/// A TCP (with TCP_NODELAY) or unix socket that is being connected.
class Connecting {
 public:
  virtual ~Connecting() = default;
  /// Null if it is not connected within `longest`. The error says why it failed, without naming the
  /// endpoint. Not to be called again after it has returned a transport or an error.
  virtual tl::expected<std::unique_ptr<Transport>, std::string> get(
      Duration longest, const std::stop_token& stop) = 0;
};

/// Does not wait. `timeout` becomes the socket's own timeout.
tl::expected<std::unique_ptr<Connecting>, std::string> begin_connecting(const Endpoint& endpoint,
                                                                        Duration timeout);

/// The same, and waits. The error does not name the endpoint.
tl::expected<std::unique_ptr<Transport>, std::string> connect_socket(const Endpoint& endpoint,
                                                                     Duration timeout,
                                                                     const std::stop_token& stop);

}  // namespace lockbench::redis
