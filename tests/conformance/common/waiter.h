#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/conformance/common/bench.h"

namespace lockbench::test {

/// An acquisition on a thread of its own.
class Waiter {
 public:
  Waiter(std::unique_ptr<Client> client, std::string key, Duration patience,
         Duration ttl = seconds(10))
      : client_(std::move(client)), thread_([this, key = std::move(key), patience, ttl] {
          result_ = client_->acquire(key, patience, ttl, stop_.get_token());
          ended_ = client_->now();
          done_ = true;
        }) {}

  /// Until it waits; false if it does not.
  bool waits() { return client_->trace().await_waiting(seconds(5)); }
  void stop() { stop_.request_stop(); }
  bool is_done() const { return done_; }
  /// To show that it is not done, which takes that long.
  bool joins_within(Duration time) {
    const TimePoint until = BootClock::now() + time;
    while (!done_ && BootClock::now() < until) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return done_;
  }
  bool has_sent(std::string_view name) {
    for (const TracedCommand& command : client_->trace().take()) {
      if (command.name == name) return true;
    }
    return false;
  }
  const AcquireResult& join() {
    if (thread_.joinable()) thread_.join();
    return result_;
  }
  TimePoint ended() {
    join();
    return ended_;
  }
  Client& client() { return *client_; }

 private:
  std::unique_ptr<Client> client_;
  std::stop_source stop_;
  AcquireResult result_;
  TimePoint ended_;
  std::atomic<bool> done_ = false;
  std::jthread thread_;
};

}  // namespace lockbench::test
