#pragma once

#include <memory>
#include <stop_token>

#include "strategies/carrier.h"

namespace lockbench::loadgen {

/// A stop that comes with another one, or after some time. Where nothing can run beside the caller
/// it comes with the other one only.
class StopAfter {
 public:
  StopAfter(Duration time, const std::stop_token& other) : on_other_(other, Request{stop_}) {
    auto timer = Carrier::current().start(
        [stop = stop_, time](const std::stop_token& over) mutable {
          Carrier& carrier = Carrier::current();
          carrier.wait(nullptr, carrier.now() + time, over);
          stop.request_stop();
        },
        [](const std::string& /*why*/) {});
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
  std::unique_ptr<Task> timer_;
};

}  // namespace lockbench::loadgen
