#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>

namespace lockbench::memcached {

/// libmemcached's socket, which its API does not give out, for two things that it cannot do. It
/// polls for every answer; with a timeout on the socket itself, an answer costs one system call.
/// And a stop ends a wait: it shuts down the reading side unless the answer comes within kGrace of
/// the command. Used by the connection's thread; the stop may come from any thread.
class HiddenSocket {
 public:
  static constexpr std::chrono::milliseconds kGrace{30};

  HiddenSocket() = default;
  HiddenSocket(const HiddenSocket&) = delete;
  HiddenSocket& operator=(const HiddenSocket&) = delete;
  ~HiddenSocket() { release(); }

  /// Finds the socket that was just connected from `own_port` to `server_port` and sets its
  /// timeout. False if it is not found: then libmemcached polls.
  bool seize(std::uint16_t own_port, std::uint16_t server_port, std::chrono::nanoseconds timeout);
  /// Shuts the connection down, so that closing it does not wait for the server. Idempotent.
  void release();

  /// To be called round each command. A command that begins after the stop is not interrupted, but
  /// waits no longer than kGrace.
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
  /// libmemcached may have closed it meanwhile, and its number may be another file's.
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
