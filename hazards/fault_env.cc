#include "hazards/fault_env.h"

#include <csignal>

namespace lockbench::hazards {

void FaultEnv::arm(const CommandFault& fault) {
  fault_ = fault;
  passed_ = 0;
}

WaitResult FaultEnv::wait(Event* event, TimePoint deadline, const std::stop_token& stop) {
  report_waiting();
  return ForwardingEnv::wait(event, deadline, stop);
}

CommandFate FaultEnv::before_command(const CommandInfo& command) {
  ++sent_;
  if (command.blocks) report_waiting();
  strikes(CommandFault::Place::before);
  return ForwardingEnv::before_command(command);
}

CommandFate FaultEnv::after_command(const CommandInfo& command, CommandEnd end) {
  const CommandFate fate = ForwardingEnv::after_command(command, end);
  return strikes(CommandFault::Place::after) ? CommandFate::drop : fate;
}

void FaultEnv::report_waiting() {
  if (std::exchange(expects_wait_, false)) on_waiting_();
}

/// True if the answer must be dropped.
bool FaultEnv::strikes(CommandFault::Place place) {
  if (!fault_ || fault_->place != place || ++passed_ != fault_->command) return false;
  const CommandFault::Action action = fault_->action;
  fault_.reset();
  if (action == CommandFault::Action::die) std::raise(SIGKILL);
  if (action == CommandFault::Action::stall) std::raise(SIGSTOP);
  return action == CommandFault::Action::drop_answer;
}

}  // namespace lockbench::hazards
