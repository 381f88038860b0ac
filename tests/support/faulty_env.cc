#include "tests/support/faulty_env.h"

#include <thread>

namespace lockbench::test {
bool FaultyEnv::Countdown::strikes() {
  if (next_ == 0 || --next_ > 0) return false;
  if (--count_ > 0) next_ = 1;
  return true;
}

CommandFate FaultyEnv::before_command(const CommandInfo& command) {
  if (commands_.strikes()) return CommandFate::drop;
  return ForwardingEnv::before_command(command);
}

CommandFate FaultyEnv::after_command(const CommandInfo& command, CommandEnd end) {
  if (delay_ > Duration::zero()) std::this_thread::sleep_for(delay_);
  passed_ += std::exchange(late_, {});
  if (const auto happens = std::exchange(meanwhile_, {})) happens();
  if (answers_.strikes()) return CommandFate::drop;
  return ForwardingEnv::after_command(command, end);
}

}  // namespace lockbench::test
