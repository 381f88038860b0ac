#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "strategies/env.h"

namespace lockbench::hazards {

/// A fault at one command of a client.
struct CommandFault {
  enum class Action {
    die,          ///< SIGKILL to itself
    stall,        ///< SIGSTOP to itself: the whole process stops until SIGCONT
    drop_answer,  ///< the command takes effect, but the client gets no answer
  };
  enum class Place {
    before,  ///< before it is sent
    after,   ///< after its answer was read
  };
  Action action = Action::die;
  int command = 1;  ///< number of the command since arm(), from 1
  Place place = Place::after;
};

/// An Env with faults for one client: it counts commands, can fail at one of them, and can shift
/// the wall clock. Used on that client's thread.
class FaultEnv : public ForwardingEnv {
 public:
  /// `on_waiting` is called once after each expect_wait(), when an acquisition has found the lock
  /// taken and starts to wait.
  FaultEnv(std::unique_ptr<Env> world, std::function<void()> on_waiting)
      : ForwardingEnv(std::move(world)), on_waiting_(std::move(on_waiting)) {}

  /// Replaces the previous fault and restarts its count.
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
  void report_waiting();
  bool strikes(CommandFault::Place place);

  std::function<void()> on_waiting_;
  std::optional<CommandFault> fault_;
  int passed_ = 0;  ///< commands that have passed the fault's place since arm()
  int sent_ = 0;
  Duration wall_offset_{};
  bool expects_wait_ = false;
};

}  // namespace lockbench::hazards
