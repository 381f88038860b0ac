#include "strategies/env.h"

#include <fmt/format.h>

#include <random>

#include "strategies/carrier.h"
#include "strategies/random.h"
#include "strategies/services.h"

namespace lockbench {
namespace {

class SystemEnv : public Env {
 public:
  explicit SystemEnv(std::uint64_t seed) : random_(seed) {}

  TimePoint now() override { return BootClock::now(); }
  WallTime wall_now() override { return std::chrono::system_clock::now(); }
  std::uint64_t random() override { return random_(); }

  std::unique_ptr<Event> make_event() override { return Carrier::current().make_event(); }
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    return Carrier::current().wait(event, deadline, stop);
  }

 private:
  Random random_;
};

}  // namespace

std::unique_ptr<Env> make_system_env(std::uint64_t seed) {
  return std::make_unique<SystemEnv>(seed);
}

std::unique_ptr<Env> make_service_env(Services& services) {
  const auto system = [] {
    return std::make_shared<EnvSource>(
        EnvSource{[] { return make_system_env(std::random_device()()); }});
  };
  return services.get_or_make<EnvSource>(system).make();
}

std::string random_token(Env& env) {
  return fmt::format("{:016x}{:016x}", env.random(), env.random());
}

}  // namespace lockbench
