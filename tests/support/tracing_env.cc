#include "tests/support/tracing_env.h"

#include <utility>

namespace lockbench::test {

WaitResult TracingEnv::wait(Event* event, TimePoint deadline, const std::stop_token& stop) {
  {
    const std::scoped_lock lock(mutex_);
    ++waits_;
  }
  changed_.notify_all();
  return ForwardingEnv::wait(event, deadline, stop);
}

CommandFate TracingEnv::before_command(const CommandInfo& command) {
  {
    const std::scoped_lock lock(mutex_);
    commands_.push_back({std::string(command.store), std::string(command.endpoint),
                         std::string(command.name), std::string(command.key)});
    ++under_way_;
    if (command.blocks) ++waits_;
  }
  changed_.notify_all();
  return ForwardingEnv::before_command(command);
}

CommandFate TracingEnv::after_command(const CommandInfo& command, CommandEnd end) {
  {
    const std::scoped_lock lock(mutex_);
    --under_way_;
  }
  return ForwardingEnv::after_command(command, end);
}

std::vector<TracedCommand> TracingEnv::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(commands_, {});
}

int TracingEnv::under_way() const {
  const std::scoped_lock lock(mutex_);
  return under_way_;
}

bool TracingEnv::await_waiting(Duration bound) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, bound, [this] { return waits_ > 0; });
}

bool TracingEnv::await_command(Duration bound) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, bound, [this] { return under_way_ > 0; });
}

std::vector<std::string> names_of(const std::vector<TracedCommand>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const TracedCommand& command : commands) names.push_back(command.name);
  return names;
}

}  // namespace lockbench::test
