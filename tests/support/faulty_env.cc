#include "tests/support/faulty_env.h"

#include <thread>

namespace lockbench::test {
namespace {

/// Counts down; true for the one that it was set for.
bool is_due(std::atomic<int>& countdown) { return countdown > 0 && --countdown == 0; }

}  // namespace

CommandFate FaultyEnv::before_command(const CommandInfo& command) {
  if (is_due(drop_command_)) return CommandFate::drop;
  return ForwardingEnv::before_command(command);
}

CommandFate FaultyEnv::after_command(const CommandInfo& command, CommandEnd end) {
  if (delay_ > Duration::zero()) std::this_thread::sleep_for(delay_);
  if (is_due(drop_answer_)) return CommandFate::drop;
  return ForwardingEnv::after_command(command, end);
}

}  // namespace lockbench::test
