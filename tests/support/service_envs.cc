#include "tests/support/service_envs.h"

#include <random>
#include <utility>

#include "strategies/carrier.h"

namespace lockbench::test {

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
  return std::make_shared<EnvSource>(EnvSource{
      [this] { return std::make_unique<World>(make_system_env(std::random_device()()), *this); }});
}

std::vector<TracedCommand> ServiceEnvs::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(commands_, {});
}

bool ServiceEnvs::await(const std::string& name, int count, Duration longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [&] { return ended_[name] >= count; });
}

bool ServiceEnvs::await_any(int count, Duration longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [&] { return all_ended_ >= count; });
}

int ServiceEnvs::ended() const {
  const std::scoped_lock lock(mutex_);
  return all_ended_;
}

void ServiceEnvs::hold_back_all() {
  const std::scoped_lock lock(mutex_);
  holds_back_ = true;
}

bool ServiceEnvs::await_held(Duration longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return held_ > 0; });
}

void ServiceEnvs::let_go() {
  const std::scoped_lock lock(mutex_);
  holds_back_ = false;
}

void ServiceEnvs::begin(const CommandInfo& command) {
  {
    const std::scoped_lock lock(mutex_);
    commands_.push_back({std::string(command.store), std::string(command.endpoint),
                         std::string(command.name), std::string(command.key)});
    if (!holds_back_) return;
    ++held_;
  }
  changed_.notify_all();
  // The service may be a fiber, whose thread others need.
  const TimePoint until = Carrier::current().now() + kPatience;
  for (TimePoint now = Carrier::current().now(); now < until && holds_back();
       now = Carrier::current().now()) {
    Carrier::current().wait(nullptr, now + std::chrono::milliseconds(1), {});
  }
  const std::scoped_lock lock(mutex_);
  --held_;
}

bool ServiceEnvs::holds_back() const {
  const std::scoped_lock lock(mutex_);
  return holds_back_;
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
