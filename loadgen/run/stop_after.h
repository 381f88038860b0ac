#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "strategies/duration.h"
#include "strategies/thread.h"

namespace lockbench::loadgen {

/// A stop that comes with another one, or after some time. Where no thread can be had it comes with
/// the other one only.
class StopAfter {
 public:
  StopAfter(Duration time, const std::stop_token& other) : on_other_(other, Request{stop_}) {
    auto timer = Thread::start(
        [stop = stop_, time](const std::stop_token& over) mutable {
          std::mutex mutex;
          std::condition_variable_any changed;
          std::unique_lock lock(mutex);
          changed.wait_for(lock, over, time, [] { return false; });
          stop.request_stop();
        },
        [](const std::string& /*why*/) {}, Thread::Stack::small);
    if (timer) timer_ = *std::move(timer);
  }

  std::stop_token token() const { return stop_.get_token(); }

 private:
  struct Request {
    std::stop_source stop;
    void operator()() { stop.request_stop(); }
  };

  std::stop_source stop_;
  std::stop_callback<Request> on_other_;
  Thread timer_;
};

}  // namespace lockbench::loadgen
