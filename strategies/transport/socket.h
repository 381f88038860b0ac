#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/duration.h"

namespace lockbench {

/// Where a server listens.
struct SocketAddress {
  std::string host;
  int port = 0;
  std::string path{};  ///< of a unix socket; empty: TCP
};

/// Carries a protocol's bytes. TLS or a simulated network can replace the socket here. One thread
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

/// A connection with an awaited answer.
struct Watched {
  int descriptor = -1;
  bool ready = false;
};

/// Waits until one of these has input, for at most `longest`, and marks those that have. A stop
/// ends the wait within 50 ms. If a descriptor is -1, returns at once with all of them marked.
void wait_for_any(std::span<Watched> watched, Duration longest, const std::stop_token& stop);

/// A TCP (with TCP_NODELAY) or unix socket that is being connected.
class Connecting {
 public:
  virtual ~Connecting() = default;
  /// Null if it is not connected within `longest`. The error says why it failed, without naming the
  /// server. Not to be called again after it has returned a transport or an error.
  virtual tl::expected<std::unique_ptr<Transport>, std::string> get(
      Duration longest, const std::stop_token& stop) = 0;
};

/// Does not wait. `timeout` becomes the socket's own timeout.
tl::expected<std::unique_ptr<Connecting>, std::string> begin_connecting(
    const SocketAddress& address, Duration timeout);

/// The same, and waits. The error does not name the server.
tl::expected<std::unique_ptr<Transport>, std::string> connect_socket(const SocketAddress& address,
                                                                     Duration timeout,
                                                                     const std::stop_token& stop);

}  // namespace lockbench
