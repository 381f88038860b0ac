#include "tests/support/test_envs.h"

#include "strategies/carrier.h"

namespace lockbench::test {
namespace {

// The first command of a connection; tests do not count it.
constexpr std::string_view kLogin = "AUTH";

constexpr std::chrono::seconds kSleep{1};

TracedCommand traced(const CommandInfo& command) {
  return {std::string(command.store), std::string(command.endpoint), std::string(command.name),
          std::string(command.key)};
}

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

std::vector<std::string> names_of(const std::vector<TracedCommand>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const TracedCommand& command : commands) names.push_back(command.name);
  return names;
}

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
    commands_.push_back(traced(command));
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

class ServiceEnvs::World : public ForwardingEnv {
 public:
  World(std::unique_ptr<Env> system, ServiceEnvs& worlds)
      : ForwardingEnv(std::move(system)), worlds_(worlds) {}

  CommandFate before_command(const CommandInfo& command) override {
    worlds_.begin(command);
    return ForwardingEnv::before_command(command);
  }
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override {
    worlds_.end(command);
    return ForwardingEnv::after_command(command, end);
  }

 private:
  ServiceEnvs& worlds_;
};

std::shared_ptr<EnvSource> ServiceEnvs::source() {
  return std::make_shared<EnvSource>(
      EnvSource{[this] { return std::make_unique<World>(make_system_env(random_seed()), *this); }});
}

bool ServiceEnvs::await(const std::string& name, int count, Duration longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [&] { return ended_[name] >= count; });
}

bool ServiceEnvs::await_any(int count, Duration longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [&] { return all_ended_ >= count; });
}

bool ServiceEnvs::await_held(Duration longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return held_ > 0; });
}

void ServiceEnvs::begin(const CommandInfo& command) {
  {
    const std::scoped_lock lock(mutex_);
    commands_.push_back(traced(command));
    if (!holds_back_) return;
    ++held_;
  }
  changed_.notify_all();
  // Do not block: the service may be a fiber, and others need its thread.
  const TimePoint until = Carrier::current().now() + kPatience;
  for (TimePoint now = Carrier::current().now(); now < until && holds_back();
       now = Carrier::current().now()) {
    Carrier::current().wait(nullptr, now + std::chrono::milliseconds(1), {});
  }
  const std::scoped_lock lock(mutex_);
  --held_;
}

void ServiceEnvs::end(const CommandInfo& command) {
  {
    const std::scoped_lock lock(mutex_);
    ++ended_[std::string(command.name)];
    ++all_ended_;
  }
  changed_.notify_all();
}

}  // namespace lockbench::test
