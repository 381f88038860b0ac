#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "strategies/env.h"

namespace lockbench::hazards {

/// A fault at an exact place among the commands of one client.
struct CommandFault {
  enum class Action {
    die,          ///< SIGKILL, by its own hand
    stall,        ///< SIGSTOP: the whole process stands still until somebody continues it
    drop_answer,  ///< it took effect, and the client is never told
  };
  enum class Place {
    before,  ///< it is sent
    after,   ///< its answer was read
  };
  Action action = Action::die;
  int command = 1;  ///< which of those that come, from 1
  Place place = Place::after;
};

/// One client's world with faults in it: its commands are counted, one of them can be the place of
/// a fault, and its wall clock can be wrong. Used on that client's thread.
class FaultEnv : public ForwardingEnv {
 public:
  /// `on_waiting` is called when an acquisition, having found the lock taken, begins to wait: once
  /// after each expect_wait().
  FaultEnv(std::unique_ptr<Env> world, std::function<void()> on_waiting)
      : FaultEnv(*world, std::move(on_waiting)) {
    world_ = std::move(world);
  }

  /// Replaces what was armed before; counts from here.
  void arm(const CommandFault& fault);
  void expect_wait(bool expected) { expects_wait_ = expected; }
  void shift_wall_clock(Duration by) { wall_offset_ += by; }
  /// Commands sent since the last call.
  int take_count() { return std::exchange(sent_, 0); }

  WallTime wall_now() override { return ForwardingEnv::wall_now() + wall_offset_; }
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override;
  CommandFate before_command(const CommandInfo& command) override;
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override;

 private:
  FaultEnv(Env& world, std::function<void()> on_waiting)
      : ForwardingEnv(world), on_waiting_(std::move(on_waiting)) {}

  void tell_waiting();
  bool strikes(CommandFault::Place place);

  std::unique_ptr<Env> world_;
  std::function<void()> on_waiting_;
  std::optional<CommandFault> fault_;
  int passed_ = 0;  ///< commands that have come to the fault's kind of place since it was armed
  int sent_ = 0;
  Duration wall_offset_{};
  bool expects_wait_ = false;
};

}  // namespace lockbench::hazards
