#pragma once

#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
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

/// Owned by its pending operations and by the proxy, which outlives it until close().
class ProxyConnection : public std::enable_shared_from_this<ProxyConnection> {
  using Socket = asio::ip::tcp::socket;

 public:
  ProxyConnection(Socket client, ProxyShared& shared, const Faults& faults,
                  std::function<void()> on_end)
      : client_(std::move(client)),
        server_(shared.io),
        shared_(shared),
        faults_(faults),
        to_server_(*this, client_, server_, shared.counts.to_server, nullptr),
        to_client_(*this, server_, client_, shared.counts.to_client, &shared.counts.from_server),
        on_end_(std::move(on_end)) {}

  /// Connects to the server unless a fault prevents it; then the client waits.
  void start() {
    prepare(client_);
    if (faults_.obstacle != Obstacle::none) return wait_in_vain();
    server_.async_connect(shared_.server,
                          [connection = shared_from_this()](const std::error_code& error) {
                            if (!connection->closed_) connection->connected(error);
                          });
  }

  void strike(const Fault& fault) {
    faults_.add(fault);
    for (Way* way : {&to_server_, &to_client_}) {
      if (!closed_) way->adapt();
    }
  }

  /// The faults are over: continues, or is reset if it has lost bytes.
  void heal(std::chrono::nanoseconds delay) {
    if (in_vain_ || lost_server_ || to_server_.lost_something() || to_client_.lost_something())
      return abort();
    faults_.delay = delay;
    strike(Obstacle::none);
  }

  /// Drops the server's packets before the kernel's TCP sees them. Cannot be undone.
  std::error_code drop_server_packets() {
    lost_server_ = true;
    if (!server_.is_open()) return {};
    sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
    const sock_fprog program{.len = 1, .filter = &drop_all};
    if (setsockopt(server_.native_handle(), SOL_SOCKET, SO_ATTACH_FILTER, &program,
                   sizeof program) != 0) {
      return {errno, std::generic_category()};
    }
    return {};
  }

  /// Resets both ends.
  void abort() {
    if (closed_) return;
    reset(client_);
    reset(server_);
    close();
  }

 private:
  /// Of one connection in one direction; when it is full, the sender waits. Bounds the throughput
  /// under a delay to this many bytes per delay.
  static constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

  /// One direction: reads from one socket and writes to the other.
  class Way {
   public:
    /// `got`: counts the bytes that are read, unless null.
    Way(ProxyConnection& owner, Socket& from, Socket& to, std::uint64_t& delivered,
        std::uint64_t* got)
        : owner_(owner),
          from_(from),
          to_(to),
          shared_(owner.shared_),
          faults_(owner.faults_),
          delivered_(delivered),
          got_(got),
          timer_(owner.shared_.io) {}

    void start() {
      started_ = true;
      await_input();
    }

    /// Call it when the connection's faults have changed.
    void adapt() {
      if (faults_.obstacle == Obstacle::black_hole && !queue_.empty()) {
        swallow(queued_bytes_);
        queue_.clear();
        queued_bytes_ = 0;
      }
      deliver();
      await_input();
    }

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

    void await_input() {
      if (!started_ || reading_ || input_over_ || over_ || faults_.obstacle == Obstacle::hold)
        return;
      if (queued_bytes_ >= kBufferBytes) return;
      reading_ = true;
      from_.async_wait(Socket::wait_read,
                       [this, connection = owner_.shared_from_this()](const std::error_code&) {
                         reading_ = false;
                         if (!connection->closed_ && faults_.obstacle != Obstacle::hold) read();
                       });
    }

    void read() {
      std::error_code error;
      const std::size_t got = from_.read_some(asio::buffer(shared_.scratch), error);
      if (not_now(error)) return await_input();
      if (error) return end_input(error == asio::error::eof ? End::closed : End::reset);
      if (got_ != nullptr) *got_ += got;
      if (faults_.obstacle == Obstacle::black_hole) {
        swallow(got);
      } else {
        take({shared_.scratch.data(), got});
      }
      await_input();
    }

    void take(std::string_view bytes) {
      if (faults_.delay.count() == 0 && queue_.empty()) {
        std::size_t written = 0;
        if (!write(bytes, written)) return;
        bytes.remove_prefix(written);
        if (bytes.empty()) return;
      }
      append({.bytes = std::string(bytes)});
    }

    void end_input(End end) {
      input_over_ = true;
      if (faults_.obstacle == Obstacle::black_hole) {
        lost_something_ = true;
        return owner_.input_was_swallowed();
      }
      append({.end = end});
    }

    void append(Chunk chunk) {
      chunk.due = Clock::now() + std::chrono::ceil<Clock::duration>(faults_.delay);
      // A shorter delay does not overtake a longer one.
      if (!queue_.empty()) chunk.due = std::max(chunk.due, queue_.back().due);
      queued_bytes_ += chunk.bytes.size();
      queue_.push_back(std::move(chunk));
      deliver();
    }

    void deliver() {
      if (delivering_later_ || over_ || faults_.obstacle != Obstacle::none) return;
      while (!queue_.empty()) {
        Chunk& chunk = queue_.front();
        if (chunk.due > Clock::now()) {
          timer_.expires_at(chunk.due);
          return deliver_after([this](auto handler) { timer_.async_wait(std::move(handler)); });
        }
        if (chunk.end != End::none) return deliver_end(chunk.end);
        std::size_t written = 0;
        if (!write(std::string_view(chunk.bytes).substr(chunk.sent), written)) return;
        chunk.sent += written;
        if (chunk.sent < chunk.bytes.size()) {
          return deliver_after(
              [this](auto handler) { to_.async_wait(Socket::wait_write, std::move(handler)); });
        }
        queued_bytes_ -= chunk.bytes.size();
        queue_.pop_front();
      }
    }

    template <typename Wait>
    void deliver_after(Wait wait) {
      delivering_later_ = true;
      wait([this, connection = owner_.shared_from_this()](const std::error_code&) {
        delivering_later_ = false;
        if (connection->closed_) return;
        deliver();
        if (!connection->closed_) await_input();  // there may be room again
      });
    }

    void deliver_end(End end) {
      if (end == End::reset) return owner_.abort();
      std::error_code ignored;
      to_.shutdown(Socket::shutdown_send, ignored);
      over_ = true;
      owner_.way_is_over();
    }

    /// False if the receiver is gone. Its last bytes may still be in transit to the other side, so
    /// that direction goes on.
    bool write(std::string_view bytes, std::size_t& written) {
      std::error_code error;
      written = to_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
      if (error && !not_now(error)) {
        over_ = true;
        queue_.clear();
        queued_bytes_ = 0;
        owner_.way_is_over();
        return false;
      }
      delivered_ += written;
      return true;
    }

    void swallow(std::size_t bytes) {
      lost_something_ = true;
      shared_.counts.swallowed += bytes;
    }

    ProxyConnection& owner_;
    Socket &from_, &to_;
    ProxyShared& shared_;
    const Faults& faults_;
    std::uint64_t& delivered_;
    std::uint64_t* const got_;
    std::deque<Chunk> queue_;
    std::size_t queued_bytes_ = 0;  // at most a read more than kBufferBytes
    asio::steady_timer timer_;
    bool started_ = false, reading_ = false, delivering_later_ = false;
    bool input_over_ = false, over_ = false, lost_something_ = false;
  };

  static bool not_now(const std::error_code& error) {
    return error == asio::error::would_block || error == asio::error::try_again;
  }
  /// Ignores errors: they show when the socket is used.
  static void prepare(Socket& socket) {
    std::error_code ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  }
  static void reset(Socket& socket) {
    std::error_code ignored;
    socket.set_option(asio::socket_base::linger(true, 0), ignored);
    socket.close(ignored);
  }

  void connected(const std::error_code& error) {
    if (error) return faults_.obstacle == Obstacle::none ? abort() : wait_in_vain();
    prepare(server_);
    to_server_.start();
    to_client_.start();
  }

  /// Reads the client's bytes, so that a client that has given up is noticed and closed.
  void wait_in_vain() {
    in_vain_ = true;
    faults_.obstacle = Obstacle::black_hole;
    to_server_.start();
  }

  void way_is_over() {
    if (to_server_.over() && to_client_.over()) close();
  }

  void input_was_swallowed() {
    if (in_vain_) close();
  }

  void close() {
    if (closed_) return;
    closed_ = true;
    std::error_code ignored;
    client_.close(ignored);
    server_.close(ignored);
    to_server_.cancel();
    to_client_.cancel();
    std::exchange(on_end_, nullptr)();
  }

  Socket client_, server_;
  ProxyShared& shared_;
  Faults faults_;
  Way to_server_, to_client_;
  std::function<void()> on_end_;
  bool in_vain_ = false;      // not connected to the server, so the client gets no answer
  bool lost_server_ = false;  // the kernel drops the server's packets
  bool closed_ = false;
};

}  // namespace lockbench::testbed
