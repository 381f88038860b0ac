#include <algorithm>
#include <atomic>
#include <fstream>
#include <iostream>
#include <mutex>
#include <thread>

#include "cli/commands/hunt.h"
#include "cli/console/session.h"
#include "results/tables/formats.h"
#include "results/tables/text.h"
#include "simulate/simulation.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

struct SimulateOptions : LoadOptions {
  static constexpr std::string_view kCommand = "simulate";
  std::optional<double> years;
  std::vector<int> regions;
  std::vector<simulate::Pauses> pauses;
  std::string faults_file, trace_out, history;
  simulate::Persistence persistence = simulate::Persistence::everysec;
  int seeds = 1;
  std::optional<int> jobs;
  bool expect_safe = false;
  HuntOptions hunting;

  SimulateOptions() { workload.duration = 1min; }

  void declare(OptionList& options) {
    options.heading("Simulation");
    // The audit's clock has a year.
    usual(options.add("duration", "D", workload.duration, duration(1ms, 8766h),
                      "simulated time of each seed, up to a year"));
    usual(options.add("years", "Y", years, number(0.0001, 1), "the same in years", "none"));
    options.add("regions", "NAME,...", regions,
                parsed(simulate::find_region,
                       [](int region) { return std::string(simulate::region_name(region)); }),
                "where clients and servers are, in turns: eu, us, ap (docs/simulation.md has the "
                "delays), here",
                "all on one machine");
    usual(
        options.add("pauses", "P,...", pauses,
                    parsed(simulate::Pauses::parse, &simulate::Pauses::to_string),
                    "clients stand still: 1%@2s in so many of the holds of a lock, 3/h@exp(2s) so "
                    "often in each client's time; the length is written like --hold",
                    "none"))
        .comma_separated = false;
    usual(options.add("faults", "FILE", faults_file, path(),
                      "faults at random times, a line each, such as \"failover 12/y 30s\" "
                      "(docs/simulation.md)",
                      "none"));
    options.add("persistence", "NAME", persistence,
                one_of<simulate::Persistence>({{"none", simulate::Persistence::none},
                                               {"everysec", simulate::Persistence::everysec},
                                               {"always", simulate::Persistence::always}}),
                "what a server whose machine dies has on disk");
    options.add("seed", "N", workload.seed, whole_number(0, INT64_MAX),
                "the first seed; the same seed plays the same simulation");
    usual(options.add("seeds", "N", seeds, whole_number(1, 1'000'000),
                      "simulations to play, each with the next seed"));
    options
        .add("jobs", "N", jobs, whole_number(1, 1024), "seeds to play at once", "one for each core")
        .effect = Effect::command;
    options
        .add("trace-out", "FILE", trace_out, path(),
             "also write everything that happens, a line each; of one seed", "none")
        .effect = Effect::output;
    options.add_flag("expect-safe", expect_safe, "exit 3 if two clients held a lock").effect =
        Effect::command;
    declare_history(options, history);
    hunting.declare(options);
    options.without({"load", "threads", "trace", "resource", "repeat", "contended-grants", "tls",
                     "redis-cluster", "counter-redis", "redis", "memcached", "nats", "zookeeper",
                     "etcd", "postgres", "iterations"},
                    [&] { LoadOptions::declare(options); });
    options.at("strategies").default_text = "";  // required
    options.without({"resume", "strict"}, [&] { output.declare(options); });
  }

  void complete(const OptionList& options) {
    LoadOptions::complete(options);
    hunting.complete(options);
    if (years && options.given("duration")) {
      throw UsageError("--years cannot be combined with --duration");
    }
    using Years = std::chrono::duration<double, std::ratio<8766 * 3600>>;
    if (years) workload.duration = std::chrono::duration_cast<Duration>(Years(*years));
    options.needs("trace-out", seeds == 1, "--seeds 1");
    options.needs("history", seeds == 1, "--seeds 1");
    faults = must(loadgen::timetable(std::move(faults), workload.duration), "--fault");
  }
};

int cores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

simulate::Faults faults_of(const SimulateOptions& options) {
  simulate::Faults faults;
  if (!options.faults_file.empty()) {
    std::ifstream file(options.faults_file);
    if (!file) throw UsageError("--faults: {} cannot be read", options.faults_file);
    faults = must(simulate::Faults::read(file, options.faults_file), "--faults");
  }
  for (const loadgen::Fault& fault : options.faults) faults.add(fault);
  return faults;
}

/// Plays the seeds side by side. Returns the outcomes of those that were played before a stop, in
/// the order of the seeds. Throws UsageError if they cannot begin.
std::vector<simulate::Outcome> play(simulate::Plan plan, const SimulateOptions& options,
                                    Console& console, const std::stop_token& stop) {
  const TimePoint began = BootClock::now();
  const auto show = [&, name = plan.strategy->name](double share) {
    const double left = seconds(BootClock::now() - began) * (1 / std::max(share, 1e-3) - 1);
    console.status(
        fmt::format("{} {:.0f} %, {} left", name, 100 * share, results::human_seconds(left)));
  };
  if (options.seeds == 1) plan.on_progress = show;
  std::vector<std::optional<simulate::Outcome>> outcomes(static_cast<std::size_t>(options.seeds));
  std::atomic<int> next{0};
  std::mutex mutex;
  std::string failure;
  int done = 0;
  const auto work = [&](const std::stop_token&) {
    for (int i = next++; i < options.seeds && !stop.stop_requested(); i = next++) {
      const auto seed = options.workload.seed + static_cast<std::uint64_t>(i);
      auto outcome = simulate::simulate(plan, seed, stop);
      const std::scoped_lock lock(mutex);
      if (!outcome) {
        failure = outcome.error();
        next = options.seeds;
        return;
      }
      outcomes[static_cast<std::size_t>(i)] = *std::move(outcome);
      show(static_cast<double>(++done) / options.seeds);
    }
  };
  {
    std::vector<Thread> threads;
    const int jobs = std::min(options.seeds, options.jobs.value_or(cores()));
    threads.reserve(static_cast<std::size_t>(jobs));
    for (int i = 0; i < jobs; ++i) {
      threads.push_back(must(Thread::start(work, [&](const std::string& why) {
        const std::scoped_lock lock(mutex);
        failure = why;
      })));
    }
    for (Thread& thread : threads) thread.finish();
  }
  console.status("");
  if (!failure.empty()) throw UsageError("{}: {}", plan.strategy->name, failure);
  std::vector<simulate::Outcome> played;
  for (auto& one : outcomes) {
    if (one) played.push_back(*std::move(one));
  }
  return played;
}

std::vector<simulate::Plan> plans_of(const SimulateOptions& options,
                                     std::vector<results::Skipped>& skipped) {
  std::vector<simulate::Plan> plans;
  const simulate::Faults faults = faults_of(options);
  for (const auto& [strategy, named] : select_for_load(options)) {
    const std::string why = simulate::why_not(*strategy);
    if (!why.empty() && named) throw UsageError("{}: {}", strategy->name, why);
    if (!why.empty()) {
      skipped.push_back({std::string(strategy->name), why});
      continue;
    }
    plans.push_back({.strategy = strategy,
                     .workload = options.workload,
                     .regions = options.regions,
                     .pauses = options.pauses,
                     .faults = faults,
                     .redis = {.replicas = options.replicas, .persistence = options.persistence}});
  }
  if (plans.empty()) throw UsageError("none of these strategies can be simulated");
  if (plans.size() > 1 && !options.trace_out.empty()) {
    throw UsageError("--trace-out requires a single strategy");
  }
  return plans;
}

int simulate_strategies(const SimulateOptions& options) {
  if (options.strategies.empty()) {
    throw UsageError(
        "simulate needs a strategy: lockbench simulate redis-set-nx-lua --pauses 1%@2s");
  }
  if (options.hunting.given()) {
    return hunt(options, options.hunting, options.jobs.value_or(cores()), options.trace_out);
  }
  results::Result result = begin_result(options.output);
  std::vector<simulate::Plan> plans = plans_of(options, result.skipped);
  result.workload = workload_record(options);
  result.simulation.emplace();
  const std::string out = out_path(options.output, result);
  std::ofstream trace;
  if (!options.trace_out.empty()) {
    trace.open(options.trace_out);
    if (!trace) throw UsageError("--trace-out: {} cannot be written", options.trace_out);
  }
  Session session(options.output);
  Console& console = session.console();
  ResultFile file(out, console);
  std::unique_ptr<history::Log> log;
  if (!options.history.empty()) log = must(history::Log::open(options.history), "--history");
  Ending ending;
  for (simulate::Plan& plan : plans) {
    if (session.stopped()) {
      result.skipped.push_back({std::string(plan.strategy->name), "interrupted"});
      continue;
    }
    plan.history = log.get();
    if (trace.is_open()) plan.trace = [&](const std::string& line) { trace << line << '\n'; };
    const std::vector<simulate::Outcome> outcomes = play(plan, options, console, session.stop());
    result.simulation->push_back(simulate::summarise(plan, options.workload.seed, outcomes));
    ending.exclusion_broken |= options.expect_safe && result.simulation->back().violations > 0;
    file.keep_step(result);
  }
  if (log) ending.errors |= !close_history(*log, console);
  if (trace.is_open() && !trace.flush()) {
    console.warn("--trace-out: not everything could be written");
    ending.errors = true;
  }
  result.interrupted = ending.interrupted = session.stopped();
  return finish(result, options.output, file, ending);
}

}  // namespace

Command simulate_command() {
  return make_command<SimulateOptions>(
      {.task = kMeasure,
       .summary = "Play strategies on simulated machines: rare faults, many clients, long times.",
       .example = "lockbench simulate redis-set-nx-lua --clients 100 --keys 10 --rate 5 --hold 1s "
                  "--ttl 3s --pauses 0.1%@5s --duration 24h"},
      simulate_strategies);
}

}  // namespace lockbench::cli
