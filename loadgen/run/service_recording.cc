#include "loadgen/run/service_recording.h"

#include <random>

#include "strategies/quorum_observer.h"
#include "strategies/replication_observer.h"

namespace lockbench::loadgen {
namespace {

/// The phase to which a service's work at `now` belongs.
Phase phase_at(const RunShared& run, TimePoint now) {
  // Services may work while clients connect, before the load starts.
  if (!run.started.load(std::memory_order_acquire)) return Phase::unmeasured;
  // A run may end before its time is up.
  if (now >= run.load_end.load() || run.over.stop_requested()) return Phase::ending;
  return now < run.measure_start.load() ? Phase::unmeasured : Phase::measured;
}

/// Counts the commands of one service.
class ServiceEnv : public ForwardingEnv {
 public:
  ServiceEnv(RunShared& run, std::unique_ptr<Env> inner)
      : ForwardingEnv(*inner), run_(run), inner_(std::move(inner)) {}

  CommandFate before_command(const CommandInfo& command) override {
    run_.recorder.add(phase_at(run_, now()), Count::commands);
    return ForwardingEnv::before_command(command);
  }
  void report(const std::string& failure) override { run_.recorder.failure(failure); }

 private:
  RunShared& run_;
  std::unique_ptr<Env> inner_;
};

/// Passes what strategies and services report to the recorder.
class RecordingObserver : public RenewalObserver,
                          public QuorumObserver,
                          public ReplicationObserver {
 public:
  explicit RecordingObserver(RunShared& run) : run_(run), clock_(run.make_env(0)) {}

  void on_renewal(const RenewalReport& report) override {
    if (in_load()) run_.recorder.renewal(phase(), report);
  }
  void on_vote(int node, Vote vote, Duration taken, bool late) override {
    if (in_load()) run_.recorder.vote(phase(), node, vote, taken, late);
  }
  void on_round(bool split, std::optional<Duration> validity) override {
    if (in_load()) run_.recorder.round(phase(), split, validity);
  }
  void on_acknowledged(Duration taken, int acknowledged, int wanted) override {
    if (in_load()) run_.recorder.replicas_waited(phase(), taken, acknowledged, wanted);
  }

 private:
  /// Before the load, clients only use their connections once.
  bool in_load() const { return run_.started.load(std::memory_order_acquire); }
  Phase phase() { return phase_at(run_, clock_->now()); }

  RunShared& run_;
  std::unique_ptr<Env> clock_;
};

}  // namespace

void record_services(RunShared& run) {
  run.services.provide<EnvSource>(std::make_shared<EnvSource>(EnvSource{
      [&run] { return std::make_unique<ServiceEnv>(run, run.make_env(std::random_device()())); }}));
  const auto observer = std::make_shared<RecordingObserver>(run);
  run.services.provide<RenewalObserver>(observer);
  run.services.provide<QuorumObserver>(observer);
  run.services.provide<ReplicationObserver>(observer);
}

}  // namespace lockbench::loadgen
