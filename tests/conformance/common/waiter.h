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

/// An acquisition on its own thread; stopped at the latest when this is destroyed.
class Waiter {
 public:
  /// The thread's next action.
  using Then = std::function<void(Client& client, const AcquireResult& result)>;

  Waiter(std::unique_ptr<Client> client, std::string key, Duration longest = patience(),
         Duration ttl = kLongTtl, Mode mode = Mode::exclusive, Then then = {})
      : client_(std::move(client)),
        thread_([this, key = std::move(key), longest, ttl, mode, then = std::move(then)] {
          result_ = client_->acquire(key, longest, ttl, stop_.get_token(), mode);
          done_ = true;
          if (then) then(*client_, result_);
        }) {}

  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { stop_.request_stop(); }

  /// Returns once the client waits; false if it does not.
  bool waits() { return client_->trace().await_waiting(); }
  void stop() { stop_.request_stop(); }
  bool is_done() const { return done_; }
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
  Client& client() { return *client_; }

 private:
  std::unique_ptr<Client> client_;
  std::stop_source stop_;
  AcquireResult result_;
  std::atomic<bool> done_ = false;
  std::jthread thread_;
};

}  // namespace lockbench::test
