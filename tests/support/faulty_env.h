#pragma once

#include <atomic>

#include "strategies/env.h"

namespace lockbench::test {

/// Loses commands and answers, slows answers down and sets the clock wrong, as it is told. Like any
/// Env it belongs to its client's thread, but for what is to be dropped: any may tell it that.
class FaultyEnv : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;

  /// The n-th command from now (1 is the next) never leaves; once.
  void drop_command(int n) { drop_command_ = n; }
  /// The n-th answer from now is lost; once.
  void drop_answer(int n) { drop_answer_ = n; }
  /// Every answer takes this much longer.
  void delay_answers(Duration delay) { delay_ = delay; }
  /// The time of day is off by this much.
  void skew_wall_clock(Duration skew) { skew_ = skew; }

  WallTime wall_now() override { return ForwardingEnv::wall_now() + skew_; }
  CommandFate before_command(const CommandInfo& command) override;
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override;

 private:
  std::atomic<int> drop_command_ = 0;
  std::atomic<int> drop_answer_ = 0;
  Duration delay_{};
  Duration skew_{};
};

}  // namespace lockbench::test
