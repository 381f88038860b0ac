#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "testbed/proxy/proxy.h"

/// One connection through a fault proxy. Used on the thread of the proxy's loop only.
namespace lockbench::testbed {

enum class Obstacle { none, hold, black_hole };

/// One fault, the same in both directions: a delay, or an obstacle.
using Fault = std::variant<std::chrono::nanoseconds, Obstacle>;

/// The faults of a connection.
struct Faults {
  std::chrono::nanoseconds delay{0};
  Obstacle obstacle = Obstacle::none;

  void add(const Fault& fault) {
    if (const auto* each_way = std::get_if<std::chrono::nanoseconds>(&fault)) delay = *each_way;
    if (const auto* other = std::get_if<Obstacle>(&fault)) obstacle = *other;
  }
};

/// Shared by the connections of one proxy.
struct ProxyShared {
  asio::io_context& io;
  std::vector<char>& scratch;  ///< read buffer of all connections, so that an idle one is cheap
  asio::ip::tcp::endpoint server;
  ProxyCounts counts{};
};

class ProxyConnection;

/// One direction: reads from one socket and writes to the other.
class ProxyWay {
 public:
  ProxyWay(ProxyConnection& owner, asio::ip::tcp::socket& from, asio::ip::tcp::socket& to,
           std::uint64_t& delivered);

  void start();
  /// Call it when the connection's faults have changed.
  void adapt();
  /// A black hole has swallowed bytes or the end of the stream.
  bool lost_something() const { return lost_something_; }
  /// Nothing more will be delivered.
  bool over() const { return over_; }
  void cancel() { timer_.cancel(); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class End { none, closed, reset };
  /// Bytes, or the end of the stream.
  struct Chunk {
    Clock::time_point due;
    std::string bytes;
    std::size_t sent = 0;
    End end = End::none;
  };

  void await_input();
  void read();
  void take(std::string_view bytes);
  void end_input(End end);
  void append(Chunk chunk);
  void deliver();
  void deliver_end(End end);
  bool write(std::string_view bytes, std::size_t& written);
  void swallow(std::size_t bytes);
  template <typename Wait>
  void deliver_after(Wait wait);

  ProxyConnection& owner_;
  asio::ip::tcp::socket &from_, &to_;
  ProxyShared& shared_;
  const Faults& faults_;
  std::uint64_t& delivered_;
  std::deque<Chunk> queue_;
  std::size_t queued_bytes_ = 0;  // at most a read more than kBufferBytes
  asio::steady_timer timer_;
  bool started_ = false, reading_ = false, delivering_later_ = false;
  bool input_over_ = false, over_ = false, lost_something_ = false;
};

/// Owned by its pending operations and by the proxy, which outlives it until close().
class ProxyConnection : public std::enable_shared_from_this<ProxyConnection> {
 public:
  ProxyConnection(asio::ip::tcp::socket client, ProxyShared& shared, const Faults& faults,
                  std::function<void()> on_end);

  /// Connects to the server unless a fault prevents it; then the client waits.
  void start();
  void strike(const Fault& fault);
  /// The faults are over: continues, or is reset if it has lost bytes.
  void heal(std::chrono::nanoseconds delay);
  /// Drops the server's packets before the kernel's TCP sees them. Cannot be undone.
  std::error_code drop_server_packets();
  /// Resets both ends.
  void abort();

 private:
  friend class ProxyWay;

  void connected(const std::error_code& error);
  void wait_in_vain();
  void way_is_over();
  void input_was_swallowed();
  void close();

  asio::ip::tcp::socket client_, server_;
  ProxyShared& shared_;
  Faults faults_;
  ProxyWay to_server_, to_client_;
  std::function<void()> on_end_;
  bool in_vain_ = false;      // not connected to the server, so the client gets no answer
  bool lost_server_ = false;  // the kernel drops the server's packets
  bool closed_ = false;
};

}  // namespace lockbench::testbed
