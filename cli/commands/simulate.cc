#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <thread>

#include "cli/commands/hunt.h"
#include "cli/console/session.h"
#include "results/file/json.h"
#include "results/tables/formats.h"
#include "results/tables/text.h"
#include "simulate/calibration.h"
#include "strategies/number.h"
#include "strategies/store.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

/// An option and the values that it takes in turn.
struct Sweep {
  std::string option;
  std::vector<std::string> values;

  static tl::expected<Sweep, std::string> parse(const std::string& text);
  std::string to_string() const { return fmt::format("{}={}", option, fmt::join(values, ",")); }
};

/// The options that it can be.
constexpr std::array<std::string_view, 14> kSwept{
    "ttl",  "hold",  "think",    "pauses",       "rtt",           "clients",         "keys",
    "rate", "nodes", "replicas", "node-timeout", "store-timeout", "acquire-timeout", "persistence"};

tl::expected<Sweep, std::string> Sweep::parse(const std::string& text) {
  constexpr std::size_t kMostValues = 100;
  const std::size_t equal = std::min(text.find('='), text.size());
  Sweep sweep{.option = text.substr(0, equal), .values = {""}};
  int depth = 0;  // of parentheses: uniform(1ms,3ms) is one value
  for (const char c : std::string_view(text).substr(std::min(equal + 1, text.size()))) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      sweep.values.emplace_back();
    } else {
      sweep.values.back() += c;
    }
  }
  const bool fits = std::ranges::count(kSwept, sweep.option) > 0 && sweep.values.size() > 1 &&
                    sweep.values.size() <= kMostValues &&
                    std::ranges::none_of(sweep.values, &std::string::empty);
  if (fits) return sweep;
  return tl::unexpected(
      fmt::format("\"{}\" is no sweep; allowed: an option and up to {} values, such as "
                  "ttl=1s,3s,10s; options: {}",
                  text, kMostValues, fmt::join(kSwept, ", ")));
}

struct SimulateOptions : LoadOptions {
  static constexpr std::string_view kCommand = "simulate";
  std::optional<double> years;
  std::vector<int> regions;
  std::vector<simulate::Pauses> pauses;
  std::string faults_file, trace_out, history, calibration_file;
  std::optional<Sweep> sweep;
  std::vector<SimulateOptions> points;  ///< of the sweep, by its values; none: there is no sweep
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
                "regions of clients and servers, in turn: eu, us, ap (delays: docs/simulation.md), "
                "here",
                "all on one machine");
    usual(options.add(
              "pauses", "P,...", pauses,
              parsed(simulate::Pauses::parse, &simulate::Pauses::to_string),
              "pause clients: 1%@2s for 2 s in 1 % of the holds, 3/h@exp(2s) three times an hour "
              "for each client; the length is written like --hold",
              "none"))
        .comma_separated = false;
    usual(options.add("faults", "FILE", faults_file, path(),
                      "faults at random times, one per line, such as \"failover 12/y 30s\" "
                      "(docs/simulation.md)",
                      "none"));
    usual(options.add(
        "sweep", "OPTION=VALUE,...", sweep, parsed(Sweep::parse, &Sweep::to_string),
        fmt::format("simulate with each of these values of an option: {}", fmt::join(kSwept, ", ")),
        "none"));
    options.add("calibrate", "FILE", calibration_file, path(),
                "take the times of servers and network from the runs under --load alone in this "
                "result, separately for each strategy",
                "those of docs/simulation.md");
    options.add("persistence", "NAME", persistence,
                one_of<simulate::Persistence>({{"none", simulate::Persistence::none},
                                               {"everysec", simulate::Persistence::everysec},
                                               {"always", simulate::Persistence::always}}),
                "what is on the disk of a server whose machine dies");
    options.add("seed", "N", workload.seed, whole_number(0, INT64_MAX),
                "the first seed; the same seed plays the same simulation");
    usual(options.add("seeds", "N", seeds, whole_number(1, 1'000'000),
                      "simulations to play, each with the next seed"));
    options
        .add("jobs", "N", jobs, whole_number(1, 1024), "seeds to play at once", "one for each core")
        .effect = Effect::command;
    options
        .add("trace-out", "FILE", trace_out, path(),
             "also write each event, one per line; only with one seed", "none")
        .effect = Effect::output;
    options.add_flag("expect-safe", expect_safe, "exit 3 if two clients held a lock").effect =
        Effect::command;
    declare_history(options, history);
    hunting.declare(options);
    OptionList::Names others = {"load",          "threads",          "trace",      "resource",
                                "repeat",        "contended-grants", "iterations", "tls",
                                "redis-cluster", "counter-redis"};
    for (const StoreKind* store : store_kinds()) others.push_back(store->name);
    options.without(others, [&] { LoadOptions::declare(options); });
    options.at("strategies").default_text = "";  // required
    options.without({"resume", "strict"}, [&] { output.declare(options); });
  }

  void complete(const OptionList& options) {
    if (sweep) return complete_points(options);
    LoadOptions::complete(options);
    hunting.complete(options);
    if (years && options.given("duration")) {
      throw UsageError("--years cannot be combined with --duration");
    }
    using Years = std::chrono::duration<double, std::ratio<8766 * 3600>>;
    if (years) workload.duration = std::chrono::duration_cast<Duration>(Years(*years));
    options.needs("trace-out", seeds == 1, "--seeds 1");
    options.needs("history", seeds == 1, "--seeds 1");
    options.needs("calibrate", regions.empty(), "no --regions");
    faults = must(loadgen::timetable(std::move(faults), workload.duration), "--fault");
  }

 private:
  /// Completes each point by itself. These options are then those of the first.
  void complete_points(const OptionList& options) {
    const Sweep swept = *std::exchange(sweep, std::nullopt);
    for (const std::string_view other :
         {std::string_view(swept.option), std::string_view("trace-out"),
          std::string_view("history")}) {
      if (options.given(other)) {
        throw UsageError("--sweep {} cannot be combined with --{}", swept.option, other);
      }
    }
    std::vector<SimulateOptions> all;
    for (const std::string& value : swept.values) {
      SimulateOptions& point = all.emplace_back(*this);
      OptionList of_point = options_of(point);
      for (Option& option : of_point.all()) option.given = options.given(option.name);
      Option& option = of_point.at(swept.option);
      option.given = true;
      must(option.set(value), "--sweep " + swept.option);
      point.complete(of_point);
    }
    *this = SimulateOptions(all.front());
    sweep = swept;
    points = std::move(all);
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
std::vector<simulate::Outcome> play(simulate::Plan plan, const std::string& name,
                                    const SimulateOptions& options, Console& console,
                                    const std::stop_token& stop) {
  const TimePoint began = BootClock::now();
  const auto show = [&](double share) {
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

/// A strategy at one point of the sweep, if there is one.
struct Part {
  simulate::Plan plan;
  std::optional<results::SweptValue> swept{};
};

simulate::Plan plan_of(const Descriptor* strategy, const SimulateOptions& options) {
  return {.strategy = strategy,
          .workload = options.workload,
          .regions = options.regions,
          .pauses = options.pauses,
          .faults = faults_of(options),
          .redis = {.replicas = options.replicas, .persistence = options.persistence}};
}

/// At each point of the sweep.
std::vector<Part> parts_of(const Descriptor* strategy, const SimulateOptions& options) {
  std::vector<Part> parts;
  if (!options.sweep) parts.push_back({plan_of(strategy, options)});
  for (std::size_t i = 0; i < options.points.size(); ++i) {
    const std::string& value = options.sweep->values[i];
    results::SweptValue swept{.option = options.sweep->option, .value = value};
    if (const auto length = parse_duration(value)) {
      swept.seconds = seconds(*length);
    } else {
      swept.number = parse_number<double>(value);
    }
    parts.push_back({plan_of(strategy, options.points[i]), std::move(swept)});
  }
  return parts;
}

/// Why the strategy cannot be played; empty: it can.
std::string prepare(std::vector<Part>& parts, const std::optional<results::Result>& measured) {
  std::string why = simulate::why_not(*parts.front().plan.strategy);
  for (Part& part : parts) {
    if (!why.empty() || !measured) break;
    auto calibration = simulate::calibrate(part.plan, *measured);
    if (calibration) {
      part.plan.calibration = *std::move(calibration);
    } else {
      why = "--calibrate: " + calibration.error();
    }
  }
  return why;
}

std::vector<Part> parts_of(const SimulateOptions& options, std::vector<results::Skipped>& skipped) {
  std::optional<results::Result> measured;
  if (!options.calibration_file.empty()) {
    measured = must(results::load(options.calibration_file), "--calibrate");
  }
  std::vector<Part> all;
  std::size_t strategies = 0;
  for (const auto& [strategy, named] : select_for_load(options)) {
    std::vector<Part> parts = parts_of(strategy, options);
    const std::string why = prepare(parts, measured);
    if (!why.empty() && named) throw UsageError("{}: {}", strategy->name, why);
    if (!why.empty()) {
      skipped.push_back({std::string(strategy->name), why});
      continue;
    }
    ++strategies;
    std::ranges::move(parts, std::back_inserter(all));
  }
  if (all.empty()) throw UsageError("none of these strategies can be simulated");
  if (strategies > 1 && !options.trace_out.empty()) {
    throw UsageError("--trace-out requires a single strategy");
  }
  return all;
}

std::string name_of(const simulate::Plan& plan, const std::optional<results::SweptValue>& swept) {
  if (!swept) return std::string(plan.strategy->name);
  return fmt::format("{} with {} {}", plan.strategy->name, swept->option, swept->value);
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
  std::vector<Part> parts = parts_of(options, result.skipped);
  result.workload = workload_record(options);
  if (options.sweep)
    result.workload[Option{.name = options.sweep->option}.key()] = options.sweep->values;
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
  for (auto& [plan, swept] : parts) {
    if (session.stopped()) {
      result.skipped.push_back({std::string(plan.strategy->name), "interrupted"});
      continue;
    }
    plan.history = log.get();
    if (trace.is_open()) plan.trace = [&](const std::string& line) { trace << line << '\n'; };
    const std::vector<simulate::Outcome> outcomes =
        play(plan, name_of(plan, swept), options, console, session.stop());
    result.simulation->push_back(simulate::summarise(plan, options.workload.seed, outcomes));
    result.simulation->back().swept = swept;
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
