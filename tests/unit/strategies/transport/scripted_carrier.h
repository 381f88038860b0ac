#pragma once

#include <poll.h>

#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "strategies/carrier.h"

namespace lockbench::test {

/// What the test runs on while this exists. It polls as a thread does, but something may happen
/// meanwhile, and it may report what is not so.
class ScriptedCarrier : public Carrier {
 public:
  ScriptedCarrier() { set_current(this); }
  ScriptedCarrier(const ScriptedCarrier&) = delete;
  ScriptedCarrier& operator=(const ScriptedCarrier&) = delete;
  ~ScriptedCarrier() override { set_current(nullptr); }

  bool shared() const noexcept override { return true; }
  void poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) override {
    ++polls;
    polled_for = longest;
    if (false_reports > 0) {
      --false_reports;
      return;
    }
    if (const auto happens = std::exchange(meanwhile, {})) happens();
    if (stop.stop_requested()) return;
    ::poll(descriptors.data(), descriptors.size(), static_cast<int>(ceil_milliseconds(longest)));
  }
  void keep(int descriptor) override { kept.push_back(descriptor); }
  void forget(int descriptor) noexcept override { std::erase(kept, descriptor); }
  void yield() override {}

  std::unique_ptr<Event> make_event() override { throw std::logic_error("no events here"); }
  WaitResult wait(Event*, TimePoint, const std::stop_token&) override {
    throw std::logic_error("no waits here");
  }
  tl::expected<std::unique_ptr<Task>, std::string> start(Body, OnFailure) override {
    throw std::logic_error("no tasks here");
  }

  int polls = 0;
  Duration polled_for{};  ///< at most, the latest time
  int false_reports = 0;
  std::function<void()> meanwhile;  ///< happens once
  std::vector<int> kept;
};

}  // namespace lockbench::test
