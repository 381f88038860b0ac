#include "loadgen/service_world.h"

#include <random>

namespace lockbench {
namespace {

/// To which part of the run belongs what a service does now.
Phase phase_at(const RunShared& run, TimePoint now) {
  // Read before it is set only by services that work while clients connect: before any load.
  const bool measured =
      run.started.load(std::memory_order_acquire) && now >= run.measure_start && now < run.load_end;
  return measured ? Phase::measured : Phase::unmeasured;
}

class ServiceEnv : public ForwardingEnv {
 public:
  ServiceEnv(RunShared& run, std::unique_ptr<Env> world)
      : ForwardingEnv(*world), run_(run), world_(std::move(world)) {}

  CommandFate before_command(const CommandInfo& command) override {
    run_.recorder.service_command(phase_at(run_, now()));
    return ForwardingEnv::before_command(command);
  }

 private:
  RunShared& run_;
  std::unique_ptr<Env> world_;
};

class RecordingObserver : public RenewalObserver {
 public:
  explicit RecordingObserver(RunShared& run) : run_(run), clock_(run.make_env(0)) {}

  void on_renewal(const RenewalReport& report) override {
    run_.recorder.renewal(phase_at(run_, clock_->now()), report);
  }

 private:
  RunShared& run_;
  std::unique_ptr<Env> clock_;
};

}  // namespace

void provide_service_worlds(RunShared& run) {
  run.services.provide<EnvSource>(std::make_shared<EnvSource>(EnvSource{
      [&run] { return std::make_unique<ServiceEnv>(run, run.make_env(std::random_device()())); }}));
  run.services.provide<RenewalObserver>(std::make_shared<RecordingObserver>(run));
}

}  // namespace lockbench
