#include "strategies/env.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <random>

#include "strategies/services.h"

namespace lockbench {
namespace {

class SystemEvent : public Event {
 public:
  void set() noexcept override {
    {
      const std::scoped_lock lock(mutex_);
      set_ = true;
    }
    changed_.notify_one();
  }

  WaitResult wait(TimePoint deadline, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const auto is_set = [this] { return set_; };
    const bool signalled = deadline == TimePoint::max()
                               ? changed_.wait(lock, stop, is_set)
                               : changed_.wait_until(lock, stop, deadline, is_set);
    set_ = false;
    if (signalled) return WaitResult::signalled;
    return stop.stop_requested() ? WaitResult::stopped : WaitResult::timed_out;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool set_ = false;
};

class SystemEnv : public Env {
 public:
  explicit SystemEnv(std::uint64_t seed) : random_(seed) {}

  TimePoint now() override { return BootClock::now(); }
  WallTime wall_now() override { return std::chrono::system_clock::now(); }
  std::uint64_t random() override { return random_(); }

  std::unique_ptr<Event> make_event() override { return std::make_unique<SystemEvent>(); }

  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    if (event == nullptr && deadline <= now()) {
      return stop.stop_requested() ? WaitResult::stopped : WaitResult::timed_out;
    }
    // The event of a plain sleep is never set; only a stop ends the sleep early.
    SystemEvent& awaited = event == nullptr ? sleep_ : static_cast<SystemEvent&>(*event);
    return awaited.wait(deadline, stop);
  }

 private:
  std::mt19937_64 random_;
  SystemEvent sleep_;
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
