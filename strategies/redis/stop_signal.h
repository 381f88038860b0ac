#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

namespace lockbench::redis {

/// A stop as something that poll() can wait for: a descriptor that becomes readable when the stop
/// is requested, and stays so.
class StopSignal {
 public:
  explicit StopSignal(const std::stop_token& stop);
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

  /// -1 if the process has no descriptor left: the stop is then noticed only when the wait ends.
  int fd() const { return fd_; }

 private:
  struct Raise {
    int fd;
    void operator()() const noexcept;
  };

  const int fd_;
  std::optional<std::stop_callback<Raise>> on_stop_;
};

/// One signal for all connections that heed the same stop, as thousands of them do. Thread-safe.
class StopSignals {
 public:
  std::shared_ptr<StopSignal> of(const std::stop_token& stop);

 private:
  std::mutex mutex_;
  std::stop_token latest_;
  std::weak_ptr<StopSignal> signal_;
};

}  // namespace lockbench::redis
