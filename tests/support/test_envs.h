#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "strategies/env.h"
#include "tests/support/eventually.h"

// Envs for clients and their shared services that record events and cause faults as told.
namespace lockbench::test {

/// Loses commands and answers, delays answers and skews the clock, as told. Like any Env it belongs
/// to its client's thread, but any thread may call the drop functions.
class FaultyEnv : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;

  /// Drops `count` commands, from the n-th from now on (1 is the next): they never leave.
  void drop_command(int n, int count = 1) { commands_.set(n, count); }
  /// Drops answers likewise.
  void drop_answer(int n, int count = 1) { answers_.set(n, count); }
  /// Every answer takes this much longer.
  void delay_answers(Duration delay) { delay_ = delay; }
  /// The next answer takes this much longer by the client's clock; `meanwhile` is called.
  void next_answer_is_late(Duration late, std::function<void()> meanwhile = {}) {
    late_ = late;
    meanwhile_ = std::move(meanwhile);
  }
  /// Shifts the time of day by this much.
  void skew_wall_clock(Duration skew) { skew_ = skew; }

  TimePoint now() override { return ForwardingEnv::now() + passed_; }
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    return ForwardingEnv::wait(event, deadline - passed_, stop);
  }
  WallTime wall_now() override { return ForwardingEnv::wall_now() + skew_; }
  CommandFate before_command(const CommandInfo& command) override;
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override;

 private:
  /// Counts down to an event; strikes at it and at the `count` - 1 after it.
  class Countdown {
   public:
    void set(int n, int count) {
      count_ = count;
      next_ = n;
    }
    bool strikes();

   private:
    std::atomic<int> next_ = 0;
    std::atomic<int> count_ = 0;
  };

  Countdown commands_, answers_;
  Duration delay_{};
  Duration late_{}, passed_{};
  std::function<void()> meanwhile_;
  Duration skew_{};
};

/// A command as a strategy's connection reported it, before it was sent.
struct TracedCommand {
  std::string store, endpoint, name, key;
};

/// Their names, in order.
std::vector<std::string> names_of(const std::vector<TracedCommand>& commands);

/// Records every command, and tells when its client begins to wait. Its own methods are
/// thread-safe.
class TracingEnv : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;

  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override;
  CommandFate before_command(const CommandInfo& command) override;
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override;

  /// What was reported since the last call.
  std::vector<TracedCommand> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(commands_, {});
  }
  /// Number of commands whose end was not reported yet; 0 between a client's calls.
  int under_way() const {
    const std::scoped_lock lock(mutex_);
    return under_way_;
  }
  /// Waits until the client waits (maybe in a queue at the server), or has a command under way;
  /// false if that does not happen.
  bool await_waiting();
  bool await_command();
  /// Waits until the client begins a wait of a second or more.
  bool await_sleep();
  /// Whether such a long wait lasted until its deadline.
  bool overslept() const {
    const std::scoped_lock lock(mutex_);
    return overslept_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TracedCommand> commands_;
  int under_way_ = 0;
  int waits_ = 0;
  TimePoint waits_until_ = TimePoint::min();
  bool overslept_ = false;
};

/// Envs for shared services, such as renewal and notification: records their commands, and holds
/// them back as told. Thread-safe. Must outlive the services.
class ServiceEnvs {
 public:
  /// For Services::provide().
  std::shared_ptr<EnvSource> source();

  /// What was reported since the last call.
  std::vector<TracedCommand> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(commands_, {});
  }

  /// Waits until `count` commands of that name have ended in total; false if that does not happen.
  bool await(const std::string& name, int count, Duration longest = kPatience);
  /// Likewise, whatever their names.
  bool await_any(int count, Duration longest = kPatience);
  int ended() const {
    const std::scoped_lock lock(mutex_);
    return all_ended_;
  }

  /// Commands do not leave until let_go().
  void hold_back_all() { hold_back(true); }
  /// Waits until a command is held back; false if none is.
  bool await_held(Duration longest = kPatience);
  void let_go() { hold_back(false); }

 private:
  class World;

  void begin(const CommandInfo& command);
  void end(const CommandInfo& command);
  bool holds_back() const {
    const std::scoped_lock lock(mutex_);
    return holds_back_;
  }
  void hold_back(bool all) {
    const std::scoped_lock lock(mutex_);
    holds_back_ = all;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TracedCommand> commands_;
  std::map<std::string, int, std::less<>> ended_;
  int all_ended_ = 0;
  bool holds_back_ = false;
  int held_ = 0;
};

}  // namespace lockbench::test
