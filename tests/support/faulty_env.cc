#include "tests/support/faulty_env.h"

#include "strategies/carrier.h"

namespace lockbench::test {
namespace {

// With which a connection begins: it is none of the commands that a test counts.
constexpr std::string_view kLogin = "AUTH";

}  // namespace

bool FaultyEnv::Countdown::strikes() {
  if (next_ == 0 || --next_ > 0) return false;
  if (--count_ > 0) next_ = 1;
  return true;
}

CommandFate FaultyEnv::before_command(const CommandInfo& command) {
  if (command.name != kLogin && commands_.strikes()) return CommandFate::drop;
  return ForwardingEnv::before_command(command);
}

CommandFate FaultyEnv::after_command(const CommandInfo& command, CommandEnd end) {
  if (command.name == kLogin) return ForwardingEnv::after_command(command, end);
  if (delay_ > Duration::zero())
    Carrier::current().wait(nullptr, Carrier::current().now() + delay_, {});
  passed_ += std::exchange(late_, {});
  if (const auto happens = std::exchange(meanwhile_, {})) happens();
  if (answers_.strikes()) return CommandFate::drop;
  return ForwardingEnv::after_command(command, end);
}

}  // namespace lockbench::test
