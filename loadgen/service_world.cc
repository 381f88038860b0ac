#include "loadgen/service_world.h"

#include <random>

namespace lockbench {
namespace {

/// To which part of the run belongs what a service does now.
Phase phase_at(const RunShared& run, TimePoint now) {
  // Services may work already while clients connect, before any load.
  if (!run.started.load(std::memory_order_acquire)) return Phase::unmeasured;
  // A run may end before its time is up.
  const bool over = now >= run.load_end || run.over.stop_requested();
  return now < run.measure_start || over ? Phase::unmeasured : Phase::measured;
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
