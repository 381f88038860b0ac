#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "loadgen/run/fault.h"
#include "strategies/env.h"

namespace lockbench::loadgen {

/// The client that faults of clients strike, as if it was a process of its own: it has services of
/// its own, which stand still and die with it. Struck while it holds a lock, as in the plays of
/// hazards. Thread-safe.
class Victim {
 public:
  static constexpr int kClient = 0;  ///< its number

  /// Strikes when the client is next granted a lock, and then sets `struck`.
  void arm(const Fault& fault, Event& struck) {
    const std::scoped_lock lock(mutex_);
    armed_ = &fault;
    struck_ = &struck;
  }
  void disarm() {
    const std::scoped_lock lock(mutex_);
    armed_ = nullptr;
  }

  /// Called by the client that holds a lock. The fault that strikes it now; nothing: none.
  std::optional<FaultKind> strike(TimePoint now) {
    const std::scoped_lock lock(mutex_);
    if (armed_ == nullptr) return std::nullopt;
    const Fault& fault = *std::exchange(armed_, nullptr);
    if (fault.kind == FaultKind::client_kill) dead_ = true;
    if (fault.kind == FaultKind::client_pause) paused_until_ = now + *fault.lasts;
    struck_->set();
    return fault.kind;
  }

  bool is_dead() const { return dead_; }
  /// Another process takes the dead one's place.
  void replace() { dead_ = false; }
  TimePoint paused_until() const { return paused_until_; }

 private:
  std::mutex mutex_;
  const Fault* armed_ = nullptr;
  Event* struck_ = nullptr;
  std::atomic<bool> dead_{false};
  std::atomic<TimePoint> paused_until_{TimePoint::min()};
};

/// The Env of the victim, or of one of its services. What is paused sends nothing and goes on from
/// its wait afterwards. What is dead sends nothing, so its connections close without a word.
class VictimEnv : public ForwardingEnv {
 public:
  VictimEnv(const Victim& victim, std::unique_ptr<Env> inner)
      : ForwardingEnv(std::move(inner)), victim_(victim) {}

  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    const WaitResult result = ForwardingEnv::wait(event, deadline, stop);
    if (result == WaitResult::stopped || now() >= victim_.paused_until()) return result;
    const WaitResult paused = ForwardingEnv::wait(nullptr, victim_.paused_until(), stop);
    return paused == WaitResult::stopped ? paused : result;
  }

  // Services must not wait here.
  CommandFate before_command(const CommandInfo& command) override {
    const bool silent = victim_.is_dead() || now() < victim_.paused_until();
    return silent ? CommandFate::drop : ForwardingEnv::before_command(command);
  }

 private:
  const Victim& victim_;
};

}  // namespace lockbench::loadgen
