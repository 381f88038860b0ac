#include "loadgen/run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "loadgen/record/redis_counter.h"
#include "loadgen/run/live_run.h"

namespace lockbench::loadgen {
namespace {

/// The phase to which a service's work at `now` belongs.
Phase phase_at(const RunShared& run, TimePoint now) {
  // Services may work while clients connect, before the load starts.
  if (!run.started.load(std::memory_order_acquire)) return Phase::unmeasured;
  // A run may end before its time is up.
  return run.over.stop_requested() ? Phase::ending : run.phase_at(now);
}

/// Counts the commands of one service.
class ServiceEnv : public ForwardingEnv {
 public:
  ServiceEnv(RunShared& run, std::unique_ptr<Env> inner)
      : ForwardingEnv(std::move(inner)), run_(run) {}

  CommandFate before_command(const CommandInfo& command) override {
    run_.recorder.add(phase_at(run_, now()), Count::commands);
    return ForwardingEnv::before_command(command);
  }
  void report(const std::string& failure) override { run_.recorder.failure(failure); }

 private:
  RunShared& run_;
};

/// Passes the reports of strategies and services to the recorder.
class RecordingObserver : public StrategyObserver {
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
  bool wants_echoes() const override { return true; }
  void on_echo(Duration taken) override {
    if (in_load()) run_.recorder.histograms(phase())[Timing::echo].record(taken);
  }

 private:
  /// Before the load, clients only try their connections.
  bool in_load() const { return run_.started.load(std::memory_order_acquire); }
  Phase phase() { return phase_at(run_, clock_->now()); }

  RunShared& run_;
  std::unique_ptr<Env> clock_;
};

/// For a run of an experiment: does not show its progress.
class ForwardedWarnings : public ProgressObserver {
 public:
  explicit ForwardedWarnings(const OnStep& on_warning) : on_warning_(on_warning) {}
  void on_warning(const std::string& line) override { on_warning_(line); }

 private:
  const OnStep& on_warning_;
};

/// Nodes whose votes a recorder keeps; 0 for a lock without a quorum.
int nodes_of_quorum(const Descriptor& strategy, const Endpoints& endpoints) {
  if (strategy.traits.nodes <= 1) return 0;
  return static_cast<int>(urls_of(strategy, endpoints).size());
}

}  // namespace

int generator_threads(const Workload& workload, bool beside_servers) {
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int usual = std::max(1, beside_servers ? cores - 1 : cores);
  return std::min(workload.threads.value_or(usual), workload.clients);
}

RunReport run_plans(std::span<const RunPlan> plans, ProgressObserver& observer,
                    const std::stop_token& stop) {
  RunReport report;
  Progress progress;
  int repetitions = 0;
  std::vector<std::pair<const RunPlan*, const Descriptor*>> order;
  for (const RunPlan& plan : plans) {
    progress.runs += static_cast<int>(plan.strategies.size()) * plan.workload.repeat;
    repetitions = std::max(repetitions, plan.workload.repeat);
    for (const Descriptor* strategy : plan.strategies) order.emplace_back(&plan, strategy);
  }
  for (int repetition = 1; repetition <= repetitions; ++repetition) {
    for (const auto& [plan, strategy] : order) {
      if (repetition > plan->workload.repeat) continue;
      if (stop.stop_requested()) break;
      progress.strategy = strategy->name;
      if (plans.size() > 1) progress.load = plan->workload.load;
      ++progress.run;
      if (plan->is_done && plan->is_done(*strategy, repetition)) continue;
      auto result = plan->maker
                        ? plan->maker(*plan, *strategy, repetition, progress, observer, stop)
                        : make_live_run(*plan, *strategy, repetition, progress, observer, stop);
      if (result) {
        report.runs.push_back(std::move(*result));
      } else if (!stop.stop_requested()) {
        report.not_started.push_back({{std::string(strategy->name), result.error()}, plan->run_id});
      }
    }
    std::reverse(order.begin(), order.end());
  }
  report.interrupted = stop.stop_requested();
  return report;
}

RunReport run_once(RunPlan plan, int number, const OnStep& on_warning,
                   const std::stop_token& stop) {
  plan.run_id += fmt::format("-{}", number);
  ForwardedWarnings observer(on_warning);
  return run_plans({&plan, 1}, observer, stop);
}

RunShared make_run(const RunPlan& plan, const Descriptor& strategy, int repetition, int number,
                   const Share& share, Env& env) {
  return {.strategy = strategy,
          .workload = plan.workload,
          .endpoints = plan.endpoints,
          .key_prefix = fmt::format("lockbench:{}:{{{}:{}:", plan.run_id, strategy.name, number),
          .nonce = env.random(),
          .seed = plan.workload.seed + static_cast<std::uint64_t>(repetition) - 1,
          .make_env = plan.make_env,
          .recorder = Recorder(plan.workload.clients, nodes_of_quorum(strategy, plan.endpoints)),
          .audit = Audit(plan.workload.key_count(), Carrier::current().now(),
                         holders_at_once(strategy.traits, plan.workload.strategy)),
          .handoff = HandoffTracker(plan.workload.key_count()),
          .used = UsedKeys(plan.workload.key_count() + plan.workload.clients),
          .share = share,
          .history = plan.history};
}

namespace {

/// Reads the numbers of a control without a lock from its store.
std::function<tl::expected<std::uint64_t, std::string>(int)> reader_of(RunShared& run, Env& env) {
  const std::shared_ptr<LockStrategy> reader =
      make_strategy(run.strategy, Context{.endpoints = run.endpoints,
                                          .options = run.workload.strategy,
                                          .env = env,
                                          .services = run.services});
  return [&run, &env, reader](int number) -> tl::expected<std::uint64_t, std::string> {
    const std::string key = run.key(number);
    AcquireResult read =
        reader->acquire({.key = key,
                         .ttl = run.workload.ttl,
                         .deadline = env.now() + run.workload.strategy.command_timeout,
                         .mode = Mode::shared});
    if (read.lease) return read.lease->fencing.value_or(0);
    return tl::unexpected(std::move(read.reason));
  };
}

}  // namespace

void record_services(RunShared& run) { record_services(run, run.services, nullptr); }

void record_services(RunShared& run, Services& services, const Victim* victim) {
  services.provide<EnvSource>(std::make_shared<EnvSource>(
      EnvSource{[&run, victim,
                 made = std::make_shared<std::atomic<std::uint64_t>>(0)]() -> std::unique_ptr<Env> {
        // Counts down from the top, as the clients' streams count from 0; the victim's from half.
        const std::uint64_t top = victim == nullptr ? 0 : std::uint64_t{1} << 63;
        Random seed(run.nonce, ~(top + made->fetch_add(1)));
        auto env = std::make_unique<ServiceEnv>(run, run.make_env(seed()));
        if (victim == nullptr) return env;
        return std::make_unique<VictimEnv>(*victim, std::move(env));
      }}));
  services.provide<StrategyObserver>(std::make_shared<RecordingObserver>(run));
}

tl::expected<void, std::string> equip(const RunPlan& plan, Env& env, RunShared& run) {
  const Workload& workload = plan.workload;
  if (workload.meet_every) {
    run.meetings = std::make_unique<Meetings>(workload.key_count(), *workload.meet_every);
  }
  if (workload.pool) run.pool = std::make_unique<FairQueue>(*workload.pool);
  const bool has_victim =
      std::ranges::any_of(plan.faults, [](const Fault& fault) { return is_of_client(fault.kind); });
  if (has_victim) {
    run.victim = std::make_unique<Victim>();
    run.hosts = run.victim.get();
  }
  record_services(run);
  if (plan.provide_services) plan.provide_services(run.services);
  auto demand = Demand::make(workload, run.share);
  if (!demand) return tl::unexpected(demand.error());
  run.demand = *std::move(demand);
  if (run.strategy.traits.updates) {
    run.counter = make_updated_counter(workload.key_count(), reader_of(run, env));
    return {};
  }
  if (workload.resource == Resource::memory) {
    run.counter = make_memory_counter(workload.key_count());
    return {};
  }
  const auto endpoint = redis::parse_endpoint(plan.counter_url);
  if (!endpoint) return tl::unexpected(endpoint.error());
  return make_redis_counter({.connections = run.services.get_or_make<redis::ConnectionFactory>(
                                 redis::make_connection_factory),
                             .endpoint = *endpoint,
                             .command_timeout = workload.strategy.command_timeout,
                             .env = env,
                             .keys = workload.key_count(),
                             .key_name = [&run](int key) { return run.key(key) + ":counter"; },
                             .checks_fencing = workload.resource == Resource::redis_fenced})
      .map([&run](std::unique_ptr<Counter> made) { run.counter = std::move(made); });
}

}  // namespace lockbench::loadgen
