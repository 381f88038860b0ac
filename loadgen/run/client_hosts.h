#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "loadgen/run/fault.h"
#include "strategies/env.h"
#include "strategies/lease.h"
#include "strategies/services.h"

namespace lockbench::loadgen {

/// The machines of a run's clients, which see what these do with their locks. By default all
/// clients share a process. Called on the clients' threads.
class ClientHosts {
 public:
  virtual ~ClientHosts() = default;

  virtual std::unique_ptr<Env> make_env(const RunShared& run, int client, std::uint64_t seed);
  /// Of a client in a process of its own; null: it shares the run's.
  virtual std::unique_ptr<Services> make_services(RunShared& /*run*/, int /*client*/,
                                                  std::uint64_t /*seed*/) {
    return nullptr;
  }
  /// Its process has died; false again once another one may take its place.
  virtual bool is_dead(int /*client*/) const { return false; }

  /// It begins to wait for the lock of this key.
  virtual void asks(int /*client*/, int /*key*/) {}
  /// It was granted the lock at last, `waited` after its intended start, and is to hold it for
  /// `hold`.
  virtual void granted(int /*client*/, int /*key*/, const Lease& /*lease*/, Duration /*waited*/,
                       Duration /*hold*/) {}
  virtual void gave_up(int /*client*/, int /*key*/) {}
  /// It is about to release the lock, or has died with it.
  virtual void leaves(int /*client*/, int /*key*/) {}

  static ClientHosts& one_process() {
    static ClientHosts all;
    return all;
  }
};

/// The client that faults of clients strike, as if it was a process of its own: it has services of
/// its own, which stand still and die with it. Struck while it holds a lock, as in the plays of
/// hazards. Thread-safe.
class Victim final : public ClientHosts {
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

  std::unique_ptr<Env> make_env(const RunShared& run, int client, std::uint64_t seed) override;
  std::unique_ptr<Services> make_services(RunShared& run, int client, std::uint64_t seed) override;
  bool is_dead(int client) const override { return client == kClient && dead_; }
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
    const bool silent = victim_.is_dead(Victim::kClient) || now() < victim_.paused_until();
    return silent ? CommandFate::drop : ForwardingEnv::before_command(command);
  }

 private:
  const Victim& victim_;
};

}  // namespace lockbench::loadgen
