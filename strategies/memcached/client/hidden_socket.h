#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>

namespace lockbench::memcached {

/// The socket that libmemcached keeps to itself, for what it cannot do. It polls for every answer;
/// with a time-out of the socket's own an answer costs one system call, as in the plainest client.
/// And a stop ends a wait: it shuts the reading side down, unless the answer comes within kGrace of
/// the command. Belongs to the connection's thread; the stop may come from any.
class HiddenSocket {
 public:
  static constexpr std::chrono::milliseconds kGrace{30};

  HiddenSocket() = default;
  HiddenSocket(const HiddenSocket&) = delete;
  HiddenSocket& operator=(const HiddenSocket&) = delete;
  ~HiddenSocket() { release(); }

  /// Takes hold of the socket that was connected just now from this port of ours to that of the
  /// server, and lets it wait so long for answers by itself. False if it cannot be found: then
  /// libmemcached must wait.
  bool seize(std::uint16_t own_port, std::uint16_t server_port, std::chrono::nanoseconds timeout);
  /// Breaks the connection, so that closing it does not wait for the server. Idempotent.
  void release();

  /// Round each call. Nothing interrupts one that begins after the stop, but it waits no longer
  /// than the grace.
  void begin(const std::stop_token& stop);
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::rep kIdle = 0;

  struct Cut {
    HiddenSocket& self;
    void operator()() const noexcept { self.cut(); }
  };
  void cut() noexcept;

  void wait_at_most(std::chrono::nanoseconds timeout) const;
  /// libmemcached may have closed it meanwhile, and somebody else have opened another.
  bool still_there() const;

  int socket_ = -1;
  std::uint16_t own_port_ = 0, server_port_ = 0;
  std::chrono::nanoseconds timeout_{};
  bool shortened_ = false;
  std::atomic<Clock::rep> busy_since_{kIdle};
  std::stop_token heeded_;
  std::optional<std::stop_callback<Cut>> on_stop_;
};

}  // namespace lockbench::memcached
