#include "strategies/env.h"

#include "strategies/carrier.h"
#include "strategies/random.h"
#include "strategies/services.h"

namespace lockbench {
namespace {

class SystemEnv : public Env {
 public:
  explicit SystemEnv(std::uint64_t seed) : random_(seed) {}

  TimePoint now() override { return Carrier::current().now(); }
  WallTime wall_now() override { return Carrier::current().wall_now(); }
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
  return services.get<EnvSource>().make();
}

std::string random_token(Env& env) {
  // fmt takes several times as long.
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr int kBits = 64, kBitsPerDigit = 4;
  std::string token;
  token.reserve(2 * kBits / kBitsPerDigit);
  for (const std::uint64_t bits : {env.random(), env.random()}) {
    for (int shift = kBits - kBitsPerDigit; shift >= 0; shift -= kBitsPerDigit) {
      token += kDigits[(bits >> shift) & 0xf];
    }
  }
  return token;
}

}  // namespace lockbench
