#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "strategies/env.h"

namespace lockbench::test {

/// Loses commands and answers, slows answers down and sets the clock wrong, as it is told. Like any
/// Env it belongs to its client's thread, but for what is to be dropped: any may tell it that.
class FaultyEnv : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;

  /// The n-th command from now (1 is the next) never leaves, nor do those behind it, `count` in
  /// all.
  void drop_command(int n, int count = 1) { commands_.set(n, count); }
  /// The n-th answer from now is lost; likewise.
  void drop_answer(int n, int count = 1) { answers_.set(n, count); }
  /// Every answer takes this much longer.
  void delay_answers(Duration delay) { delay_ = delay; }
  /// The next answer takes this much longer by the client's clock, and `meanwhile` happens.
  void next_answer_is_late(Duration late, std::function<void()> meanwhile = {}) {
    late_ = late;
    meanwhile_ = std::move(meanwhile);
  }
  /// The time of day is off by this much.
  void skew_wall_clock(Duration skew) { skew_ = skew; }

  TimePoint now() override { return ForwardingEnv::now() + passed_; }
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    return ForwardingEnv::wait(event, deadline - passed_, stop);
  }
  WallTime wall_now() override { return ForwardingEnv::wall_now() + skew_; }
  CommandFate before_command(const CommandInfo& command) override;
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override;

 private:
  /// Counts down; strikes the one that it was set for, and so many behind it.
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

}  // namespace lockbench::test
