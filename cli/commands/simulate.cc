#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

#include "cli/commands/commands.h"
#include "cli/console/session.h"
#include "results/tables/formats.h"
#include "results/tables/hazards.h"
#include "simulate/hunt.h"
#include "simulate/simulation.h"
#include "strategies/number.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using simulate::Trial;
using simulate::Verdict;

/// To look for orders and faults which break a lock.
struct HuntOptions {
  bool hunt = false, shrink = false;
  double minutes = 5;  ///< for each strategy
  std::optional<Trial> replay;

  bool given() const { return hunt || replay; }
  void declare(OptionList& options);
  void complete(const OptionList& options) const;
};

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
                     "redis-cluster", "counter-redis", "redis", "memcached", "zookeeper", "etcd",
                     "postgres", "iterations"},
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

/// Calls `work` on so many threads, until all have ended. Returns why one failed; empty: none did.
std::string side_by_side(int jobs, const std::function<std::string()>& work) {
  std::mutex mutex;
  std::string failure;
  const auto fail = [&](const std::string& why) {
    const std::scoped_lock lock(mutex);
    if (!why.empty()) failure = why;
  };
  std::vector<Thread> threads;
  threads.reserve(static_cast<std::size_t>(jobs));
  for (int i = 0; i < jobs; ++i) {
    threads.push_back(
        must(Thread::start([&](const std::stop_token& /*stop*/) { fail(work()); }, fail)));
  }
  for (Thread& thread : threads) thread.finish();
  return failure;
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
  int done = 0;
  const auto work = [&]() -> std::string {
    for (int i = next++; i < options.seeds && !stop.stop_requested(); i = next++) {
      const auto seed = options.workload.seed + static_cast<std::uint64_t>(i);
      auto outcome = simulate::simulate(plan, seed, stop);
      if (!outcome) {
        next = options.seeds;
        return outcome.error();
      }
      const std::scoped_lock lock(mutex);
      outcomes[static_cast<std::size_t>(i)] = *std::move(outcome);
      show(static_cast<double>(++done) / options.seeds);
    }
    return "";
  };
  const std::string failure =
      side_by_side(std::min(options.seeds, options.jobs.value_or(cores())), work);
  console.status("");
  if (!failure.empty()) throw UsageError("{}: {}", plan.strategy->name, failure);
  std::vector<simulate::Outcome> played;
  for (auto& one : outcomes) {
    if (one) played.push_back(*std::move(one));
  }
  return played;
}

/// The strategies that can be simulated. A named one that cannot is an error, others are skipped.
std::vector<const Descriptor*> simulated(const SimulateOptions& options,
                                         std::vector<results::Skipped>& skipped) {
  std::vector<const Descriptor*> strategies;
  for (const auto& [strategy, named] : select_for_load(options)) {
    const std::string why = simulate::why_not(*strategy);
    if (!why.empty() && named) throw UsageError("{}: {}", strategy->name, why);
    if (why.empty()) {
      strategies.push_back(strategy);
    } else {
      skipped.push_back({std::string(strategy->name), why});
    }
  }
  if (strategies.empty()) throw UsageError("none of these strategies can be simulated");
  return strategies;
}

/// The file of --trace-out; not open without it.
std::ofstream open_trace(const SimulateOptions& options) {
  std::ofstream trace;
  if (options.trace_out.empty()) return trace;
  trace.open(options.trace_out);
  if (!trace) throw UsageError("--trace-out: {} cannot be written", options.trace_out);
  return trace;
}

// --hunt and --replay

struct Bag {
  std::optional<Verdict> found;
  std::uint64_t seeds = 0, sections = 0;
  double took = 0;  ///< seconds

  std::string text() const {
    return fmt::format("{} seeds, {} sections, {:.0f} s, {:.0f} seeds a second", seeds, sections,
                       took, static_cast<double>(seeds) / std::max(took, 1e-3));
  }
};

/// Plays one seed after the other, several at once, until something is found or the time is over.
Bag search(const Descriptor& strategy, const SimulateOptions& options, Session& session) {
  const double time = 60 * options.hunting.minutes;
  const TimePoint began = BootClock::now();
  const auto passed = [&] { return seconds(BootClock::now() - began); };
  std::stop_source over;
  const std::stop_callback pass_on(session.stop(), [&] { over.request_stop(); });
  std::atomic<std::uint64_t> next = options.workload.seed;
  std::mutex mutex;
  Bag bag;
  const auto work = [&]() -> std::string {
    while (!over.stop_requested() && passed() < time) {
      auto verdict = simulate::play(strategy, {.seed = next++}, {}, over.get_token());
      if (!verdict && over.stop_requested()) break;
      if (!verdict) {
        over.request_stop();
        return verdict.error();
      }
      const std::scoped_lock lock(mutex);
      ++bag.seeds;
      bag.sections += verdict->sections;
      bag.took = passed();
      session.console().status(fmt::format("{}: {}, {} left", strategy.name, bag.text(),
                                           results::human_seconds(std::max(time - passed(), 0.0))));
      if (!verdict->finding || bag.found) continue;
      bag.found = *std::move(verdict);
      over.request_stop();
    }
    return "";
  };
  const std::string failure = side_by_side(options.jobs.value_or(cores()), work);
  session.console().status("");
  if (!failure.empty()) throw UsageError("{}: {}", strategy.name, failure);
  bag.took = passed();
  return bag;
}

std::string finding_text(const Descriptor& strategy, const Verdict& verdict) {
  return fmt::format("{}: {}: {}\nagain: lockbench simulate {} --replay {}\n", strategy.name,
                     to_string(verdict.finding->oracle), verdict.finding->what, strategy.name,
                     verdict.trial.to_string());
}

Verdict smallest(const Descriptor& strategy, Verdict verdict, const HuntOptions& options,
                 Session& session) {
  if (!options.shrink) return verdict;
  session.console().status(fmt::format("{}: shrinking", strategy.name));
  verdict = simulate::shrink(strategy, std::move(verdict), session.stop());
  session.console().status("");
  return verdict;
}

/// A line of a trace: "12.000300000 client-3 is granted ...".
results::HazardEvent event_of(std::string_view line) {
  const std::size_t first = line.find(' '), second = line.find(' ', first + 1);
  std::string_view who = line.substr(first + 1, second - first - 1);
  // There is only one of these.
  for (const std::string_view one : {"fault", "judge"}) {
    if (who.starts_with(one)) who = one;
  }
  return {.t = parse_number<double>(line.substr(0, first)).value_or(0),
          .who = std::string(who),
          .what = std::string(line.substr(second + 1))};
}

/// Plays the trial as a timeline. Returns whether something was found.
bool replay(const Descriptor& strategy, const SimulateOptions& options, Session& session) {
  std::ofstream trace = open_trace(options);
  Trial trial = *options.hunting.replay;
  if (options.hunting.shrink) {
    Verdict whole = must(simulate::play(strategy, trial, {}, session.stop()));
    if (whole.finding) {
      trial = smallest(strategy, std::move(whole), options.hunting, session).trial;
    }
  }
  std::vector<results::HazardEvent> events;
  const auto note = [&](const std::string& line) {
    events.push_back(event_of(line));
    if (trace.is_open()) trace << line << '\n';
  };
  const Verdict verdict = must(simulate::play(strategy, trial, note, session.stop()));
  std::string text = results::timeline_text(events);
  text += verdict.finding
              ? finding_text(strategy, verdict)
              : fmt::format("{}: nothing found in trial {}\n", strategy.name, trial.to_string());
  const bool printed = print_text(results::printable_page(text, false));
  if ((trace.is_open() && !trace.flush()) || !printed) {
    session.console().warn("not everything could be written");
  }
  return verdict.finding.has_value();
}

/// Hunts or replays, and prints what was found. Returns the exit code.
int hunt(const SimulateOptions& options) {
  std::vector<results::Skipped> skipped;
  const std::vector<const Descriptor*> strategies = simulated(options, skipped);
  const HuntOptions& hunting = options.hunting;
  if (hunting.replay && strategies.size() > 1) throw UsageError("--replay needs one strategy");
  Session session(options.output);
  Ending ending;
  if (hunting.replay) ending.exclusion_broken = replay(*strategies.front(), options, session);
  for (const Descriptor* strategy : strategies) {
    if (hunting.replay || session.stopped()) break;
    Bag bag = search(*strategy, options, session);
    std::string text = fmt::format("{}: {}: {}\n", strategy->name,
                                   bag.found ? "found" : "nothing found", bag.text());
    if (bag.found) {
      ending.exclusion_broken = true;
      text += finding_text(*strategy, smallest(*strategy, *std::move(bag.found), hunting, session));
    }
    ending.errors |= !print_text(results::printable_page(text, false));
  }
  ending.interrupted = session.stopped();
  return exit_code_of(ending);
}

std::vector<simulate::Plan> plans_of(const SimulateOptions& options,
                                     std::vector<results::Skipped>& skipped) {
  std::vector<simulate::Plan> plans;
  const simulate::Faults faults = faults_of(options);
  for (const Descriptor* strategy : simulated(options, skipped)) {
    plans.push_back({.strategy = strategy,
                     .workload = options.workload,
                     .regions = options.regions,
                     .pauses = options.pauses,
                     .faults = faults,
                     .redis = {.replicas = options.replicas, .persistence = options.persistence}});
  }
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
  if (options.hunting.given()) return hunt(options);
  results::Result result = begin_result(options.output);
  std::vector<simulate::Plan> plans = plans_of(options, result.skipped);
  result.workload = workload_record(options);
  result.simulation.emplace();
  const std::string out = out_path(options.output, result);
  std::ofstream trace = open_trace(options);
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

void HuntOptions::declare(OptionList& options) {
  options.heading("Hunt");
  options.add_flag("hunt", hunt,
                   "play seeds with orders of events and faults of their own until a lock breaks "
                   "a promise; exit 3 if one does");
  options.add("minutes", "M", minutes, number(0.01, 10'000), "how long to hunt with each strategy");
  options.add("replay", "TRIAL", replay, parsed(Trial::parse, &Trial::to_string),
              "show what happened in a trial of --hunt, a line each: a seed, or what --shrink left "
              "of it",
              "none");
  options.add_flag("shrink", shrink,
                   "leave out clients, sections, faults and changes of priorities as long as the "
                   "same promise is broken");
  for (const char* const name : {"hunt", "minutes", "replay", "shrink"}) {
    options.at(name).effect = Effect::command;
  }
}

void HuntOptions::complete(const OptionList& options) const {
  if (hunt && replay) throw UsageError("--hunt cannot be combined with --replay");
  options.needs("minutes", hunt, "--hunt");
  options.needs("shrink", given(), "--hunt or --replay");
  if (!given()) return;
  if (hunt) options.needs("trace-out", false, "--replay");
  constexpr std::array<std::string_view, 10> kOwn{"strategies", "hunt",  "minutes", "replay",
                                                  "shrink",     "seed",  "jobs",    "trace-out",
                                                  "quiet",      "events"};
  for (const Option& option : options.all()) {
    const bool own = option.name == "config" || std::ranges::count(kOwn, option.name) > 0;
    if (option.given && !own) {
      throw UsageError(
          "--{} cannot be combined with --hunt or --replay, which draw the load and "
          "the faults from the seed",
          option.name);
    }
  }
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
