#include "tests/support/tracing_env.h"

#include <utility>

#include "tests/support/eventually.h"

namespace lockbench::test {
namespace {

constexpr std::chrono::seconds kSleep{1};

}  // namespace

WaitResult TracingEnv::wait(Event* event, TimePoint deadline, const std::stop_token& stop) {
  {
    const std::scoped_lock lock(mutex_);
    ++waits_;
    waits_until_ = deadline;
  }
  changed_.notify_all();
  const bool sleeps = deadline > BootClock::now() + kSleep;
  const WaitResult result = ForwardingEnv::wait(event, deadline, stop);
  const std::scoped_lock lock(mutex_);
  overslept_ = overslept_ || (sleeps && result == WaitResult::timed_out);
  waits_until_ = TimePoint::min();
  return result;
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

bool TracingEnv::await_waiting() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [this] { return waits_ > 0; });
}

bool TracingEnv::await_command() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [this] { return under_way_ > 0; });
}

bool TracingEnv::await_sleep() {
  return eventually([this] {
    const std::scoped_lock lock(mutex_);
    return under_way_ == 0 && waits_until_ > BootClock::now() + kSleep;
  });
}

bool TracingEnv::overslept() const {
  const std::scoped_lock lock(mutex_);
  return overslept_;
}

std::vector<std::string> names_of(const std::vector<TracedCommand>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const TracedCommand& command : commands) names.push_back(command.name);
  return names;
}

}  // namespace lockbench::test
