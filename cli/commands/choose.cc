#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>

#include "choose/answer.h"
#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "hazards/scenario.h"
#include "results/file/json.h"
#include "results/stats/figures.h"
#include "strategies/store.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

ValueType<std::string> one_of_names(const std::vector<std::string_view>& names) {
  auto type = parsed([names](const std::string& text) -> tl::expected<std::string, std::string> {
    if (std::ranges::count(names, text) > 0) return text;
    return tl::unexpected(not_one_of(text, names));
  });
  type.choices = names;
  return type;
}

std::vector<std::string_view> fault_names(bool basic_alone = false) {
  std::vector<std::string_view> names;
  for (const choose::Survival& word : choose::fault_words()) {
    if (word.is_basic || !basic_alone) names.push_back(word.word);
  }
  return names;
}

tl::expected<choose::Survival, std::string> parse_survival(const std::string& text) {
  if (auto survival = choose::find_survival(text)) return *std::move(survival);
  std::vector<std::string_view> names =
      results::each_of(hazards::all_scenarios(), &hazards::Scenario::name);
  for (const choose::Survival& word : choose::fault_words()) names.emplace_back(word.word);
  std::string allowed = did_you_mean(text, names);
  if (allowed.empty()) {
    allowed = fmt::format(": {}, or a scenario (lockbench hazards --help lists them)",
                          fmt::join(fault_names(), ", "));
  }
  return tl::unexpected(fmt::format("\"{}\" is not a known fault{}", text, allowed));
}

/// Reads a figure of a run that is known to be better high or better low.
tl::expected<std::string, std::string> parse_ranking_figure(const std::string& text) {
  const std::vector<results::Figure> figures = results::figures(results::Run{});
  std::vector<std::string_view> names;
  for (const results::Figure& figure : figures) {
    if (results::compared_figure(figure.path).good != results::Good::unknown) {
      names.push_back(figure.path);
    }
  }
  if (std::ranges::count(names, text) > 0) return text;
  return tl::unexpected(fmt::format(
      "\"{}\" cannot rank strategies{}: use a figure of a run that is better high or better low, "
      "such as acquire.p99 or commands_per_section",
      text, did_you_mean(text, names)));
}

/// The strategy of that name, or that a library of that name implements.
tl::expected<std::string, std::string> parse_today(const std::string& text) {
  if (find_strategy(text) != nullptr) return text;
  const std::string wanted = boost::algorithm::to_lower_copy(text);
  std::string_view shortest, found;
  std::vector<std::string_view> names;
  for (const Descriptor* strategy : all_strategies()) {
    names.push_back(strategy->name);
    for (const Library& library : strategy->libraries) {
      if (library.similar) continue;
      const std::string name = boost::algorithm::to_lower_copy(std::string(library.name));
      // The plain lock of a library has the shortest name.
      const bool fits = !wanted.empty() && name.find(wanted) != std::string::npos;
      if (!fits || (!found.empty() && library.name.size() >= shortest.size())) continue;
      shortest = library.name;
      found = strategy->name;
    }
  }
  if (!found.empty()) return std::string(found);
  return tl::unexpected(
      fmt::format("\"{}\" is neither a strategy nor the name of a library (lockbench list shows "
                  "them){}",
                  text, did_you_mean(text, names)));
}

void check_fit(const choose::Requirements& requirements) {
  if (requirements.key_skew > 0 && !requirements.keys) {
    throw UsageError("--key-skew requires --keys: the number of locks to choose from");
  }
  if (requirements.none()) {
    throw UsageError(
        "choose needs a requirement, such as --stores redis or --work-time-p99 200ms "
        "(lockbench choose --help shows all)");
  }
  const auto& p50 = requirements.work_p50;
  const auto& p99 = requirements.work_p99;
  if (p50 && p99 && *p50 > *p99) {
    throw UsageError("--work-time-p50 ({}) must not be longer than --work-time-p99 ({})",
                     format_duration(*p50), format_duration(*p99));
  }
  for (const choose::Survival& fault : requirements.survive) {
    if (std::ranges::count(requirements.waived, fault.word) == 0) continue;
    throw UsageError("--waive {0} contradicts --survive {0}: use one of them", fault.word);
  }
  for (const results::Threshold& slo : requirements.slos) {
    const bool never_kept = slo.wants_less() && slo.bound <= 0;
    if (never_kept && results::compared_figure(slo.figure).unit == results::Unit::seconds) {
      throw UsageError("--slo '{}' can never be kept: its bound must be above 0", slo.text);
    }
    if (!requirements.rate || !choose::wants_throughput(slo)) continue;
    if (slo.bound <= *requirements.rate) continue;
    throw UsageError("--slo '{}' demands more than --rate offers: at most {}", slo.text,
                     *requirements.rate);
  }
}

std::vector<choose::Source> load_files(const std::vector<std::string>& paths) {
  std::vector<choose::Source> sources;
  for (const std::string& path : paths) {
    results::Result result = must(results::load(path));
    if (result.runs.empty() && !result.hazards) {
      throw UsageError("{}: contains no runs or plays", path);
    }
    if (result.interrupted) {
      Console(stderr, false, false).warn(path + ": was interrupted: only what had finished counts");
    }
    sources.push_back({path, std::move(result)});
  }
  return sources;
}

int tell(const choose::Answer& answer, const ChooseOptions& options, Ending ending,
         bool silent = false) {
  const OutputOptions& output = options.output;
  results::TextStyle style = look_of(output).style;
  style.remedy = "a wider terminal shows them";
  ChooseOptions given = options;
  OptionList asked(ChooseOptions::kCommand);
  given.declare_requirements(asked);
  const bool told = silent || print_text(output.format == Format::json
                                             ? choose::to_json(answer, asked.record())
                                             : choose::to_text(answer, style, options.why));
  ending.errors |= !told;
  ending.threshold_missed = answer.ranked.empty() || !answer.too_busy.empty();
  ending.undecided = !answer.not_decided.empty();
  if (ending.undecided) {
    Console(stderr, false, false).warn("not decided: " + answer.not_decided);
  }
  return exit_code_of(ending);
}

/// The settings of the user's servers, for the conditions of the answer.
void ask_servers(const ServerUrls& servers, choose::Requirements& requirements) {
  constexpr Duration kPatience = 3s;
  for (const auto& [name, urls] : servers) {
    const StoreKind* const kind = find_store_kind(name);
    if (urls.empty() || kind == nullptr || kind->make == nullptr) continue;
    auto found = kind->make(urls.front(), kPatience)->settings();
    if (found) {
      requirements.servers.emplace(name, *std::move(found));
    } else {
      Console(stderr, false, false)
          .warn(fmt::format("--{}: its conditions are not checked: {}", name,
                            presentable(found.error().message)));
    }
  }
}

/// The options of `run` that put the required load on these strategies, with these settings.
RunOptions run_options(const ChooseOptions& options, std::vector<std::string> strategies,
                       const std::vector<choose::Setting>& settings) {
  RunOptions values;
  values.servers = options.servers;
  values.tls = options.tls;
  OptionList list = options_of(values);
  // So that the environment is not read again: `options` has its servers, or those given instead.
  for (Option& option : list.all()) option.given = option.secret;
  for (const auto& more :
       {choose::load_options(options.requirements), choose::lock_options(settings)}) {
    strategies.insert(strategies.end(), more.begin(), more.end());
  }
  read(values, list, strategies);
  values.output = options.output;
  return values;
}

/// The required load, and the candidate's settings, on private servers.
loadgen::Workload private_load(const ChooseOptions& options, const choose::Answer& answer,
                               const choose::Candidate& one) {
  ChooseOptions simulated = options;
  simulated.requirements = answer.answered;
  simulated.servers.clear();
  simulated.tls = false;
  return run_options(simulated, {std::string(one.strategy->name)}, one.settings).workload;
}

/// Sets duration and repetitions so that the runs of so many strategies fit into `time`.
void fit(loadgen::Workload& workload, Duration time, int strategies) {
  constexpr Duration kShortest = 1s, kLongest = 5s;
  // Enough to show a difference of 25 % if repetitions scatter by 10 %.
  constexpr int kMostRounds = 4, kFewestRounds = 3;
  constexpr int kHolds = 20;  // sections of a client in a row
  const Duration besides = workload.warmup + kBesidesLoad;
  const Duration shortest = std::max<Duration>(kShortest, kHolds * workload.hold.mean());
  const Duration least = (shortest + workload.warmup) * strategies;
  if (least > time) {
    throw UsageError("--measure-time: {} strategies need {} for one run of each", strategies,
                     results::human_seconds(seconds(least)));
  }
  workload.duration = std::clamp<Duration>(time / (kFewestRounds * strategies) - besides, shortest,
                                           std::max<Duration>(kLongest, shortest));
  const auto rounds = time / ((workload.duration + besides) * strategies);
  workload.repeat = static_cast<int>(std::clamp<std::int64_t>(rounds, 1, kMostRounds));
}

/// Runs the strategies that qualify, each with its settings, and answers from the result.
int choose_by_measuring(const ChooseOptions& options, choose::Requirements requirements,
                        const choose::Answer& before, std::vector<choose::Source> files) {
  if (before.ranked_by.figure.empty()) {
    throw UsageError(
        "--measure requires --for mutex, --rank-by or --slo: else no measured figure decides");
  }
  const std::vector<std::string> names = results::each_of(
      before.ranked, [](const choose::Candidate& one) { return std::string(one.strategy->name); });
  RunOptions common = run_options(options, names, {});
  fit(common.workload, options.measure_time, static_cast<int>(names.size()));
  std::vector<Selected> selected = select_for_load(common);
  for (Selected& one : selected) one.named = false;  // skipped if its store is missing
  Session session(common.output);
  Console& console = session.console();
  Measurement measurement(common, std::move(selected));
  console.note(fmt::format("measuring {} strategies", names.size()));
  if (!measurement.deploy(session)) return session.interrupted_early();
  ask_servers(options.servers, requirements);

  const loadgen::RunPlan plan = measurement.plans().front();
  std::vector<loadgen::RunPlan> plans;
  for (const choose::Candidate& one : before.ranked) {
    if (std::ranges::find(plan.strategies, one.strategy) == plan.strategies.end()) continue;
    loadgen::RunPlan& own = plans.emplace_back(plan);
    own.strategies = {one.strategy};
    own.workload = run_options(options, {std::string(one.strategy->name)}, one.settings).workload;
    own.workload.duration = plan.workload.duration;
    own.workload.repeat = plan.workload.repeat;
    measurement.leave_to_each(choose::lock_options(one.settings));
  }
  announce(plans, console);
  ProgressView progress(console, BootClock::now);
  measurement.take(loadgen::run_plans(plans, progress, session.stop()), console);
  const int code = measurement.finish(false, console);

  files.insert(files.begin(), {measurement.out(), measurement.result()});
  const choose::Evidence measured(std::move(files), choose::reference());
  // Ruling out a strategy that broke exclusion is an answer, not a failure.
  Ending ending = ending_of(measurement.result());
  ending.exclusion_broken = false;
  const std::string problem = ending.nothing_granted ? "a run granted no lock"
                              : ending.errors        ? "requests failed or had no answer"
                                                     : "the measurement failed";
  ending.errors |= code == exit_code::kErrors;
  const int told = tell(choose::choose(requirements, all_strategies(), measured, &before), options,
                        ending, measurement.out() == kStdout);
  if (told == exit_code::kErrors) {
    console.warn(
        fmt::format("exit code {}: {} (lockbench show {})", told, problem, measurement.out()));
  }
  return told;
}

int choose_strategy(const ChooseOptions& options) {
  choose::Requirements requirements = options.requirements;
  check_fit(requirements);
  if (!options.measure) ask_servers(options.servers, requirements);
  std::vector<choose::Source> files = load_files(options.files);
  const choose::Evidence evidence(files, choose::reference());
  choose::Answer answer = choose::choose(requirements, all_strategies(), evidence);
  if (options.measure && !answer.ranked.empty() && answer.taken < 1) {
    // The answer may be for more keys; the load that is measured is the required one.
    const choose::Question question(requirements, evidence);
    for (choose::Candidate& one : answer.ranked) {
      one.settings = choose::settings_for(*one.strategy, question);
    }
    return choose_by_measuring(options, requirements, answer, std::move(files));
  }
  if (options.measure) {
    Console(stderr, false, false)
        .warn(answer.ranked.empty() ? "not measured: no strategy qualifies"
                                    : "not measured: no lock can carry this load");
    return tell(answer, options, {});
  }
  const choose::Simulations simulations = choose::simulate_unmeasured(
      answer, evidence,
      [&](const choose::Candidate& one) { return private_load(options, answer, one); });
  if (!simulations.empty()) {
    answer = choose::choose(requirements, all_strategies(), evidence, nullptr, &simulations);
  }
  return tell(answer, options, {});
}

}  // namespace

void ChooseOptions::declare_requirements(OptionList& options) {
  options.add("stores", "S,...", requirements.stores,
              each_once(one_of_names(results::each_of(store_kinds(), &StoreKind::name))),
              "stores that you can use, separated by commas", "any");
  options.add(
      "for", "USE", requirements.use,
      one_of<choose::Use>({{"mutex", choose::Use::mutex},
                           {"once", choose::Use::once},
                           {"leader", choose::Use::leader}}),
      "what the lock is for: mutex (clients wait for each other), once (a job that must not "
      "run twice; the second client skips it), leader (held as long as its holder lives)",
      "mutex");
  options.add("survive", "F,...", requirements.survive,
              each_once(parsed(parse_survival, &choose::Survival::word)),
              fmt::format("the faults to survive, separated by commas: {}, or a name or glob of "
                          "lockbench hazards",
                          fmt::join(fault_names(), ", ")),
              "none");
  options.add("waive", "F,...", requirements.waived, each_once(one_of_names(fault_names(true))),
              "basic faults that the lock need not survive", "none");
  constexpr Duration kShortestFault = 1ms, kLongestFault = 1h;
  options.add("pause", "D", requirements.pause, duration(kShortestFault, kLongestFault),
              "the longest pause of a client to survive: it sets TTL and acquire timeout", "none");
  options.add("outage", "D", requirements.outage, duration(kShortestFault, kLongestFault),
              "the longest outage of the servers, which restart, to survive", "none");
  options.add("failover", "D", requirements.failover, duration(kShortestFault, kLongestFault),
              "the longest failover of the servers to survive", "none");
  options.add("work-time-p50", "D", requirements.work_p50, duration(1us, 720h),
              "median of the work time under the lock", "unknown");
  options.add("work-time-p99", "D", requirements.work_p99, duration(1us, 720h),
              "99th percentile of the work time under the lock", "unknown");
  options.add("clients", "N", requirements.clients, whole_number(1, 100'000),
              "clients that want a lock, over all keys", "unknown");
  options.add("keys", "N", requirements.keys, whole_number(1, 10'000'000),
              "distinct locks that the clients choose from", "1");
  options.add("key-skew", "S", requirements.key_skew, number(0, 10),
              "Zipf exponent of that choice; 0: uniform");
  options.add("rtt", "D", requirements.rtt, duration(0s, 1h),
              "round-trip time between clients and servers", "unknown");
  options.add("rate", "R", requirements.rate, number(1e-7, 10'000'000),
              "sections per second over all clients; 0.000278 is one an hour", "unknown");
  options.add("slo", "EXPR", requirements.slos,
              parsed(results::parse_threshold, &results::Threshold::text),
              "objective to keep, such as 'acquire.p99<20ms'", "none");
  options.add_flag("fair", requirements.fair, "first come, first served");
  options.add("fencing-resource", "yes|no", requirements.fencing_resource,
              one_of<bool>({{"yes", true}, {"no", false}}),
              "whether the protected resource can reject writes with an old fencing number",
              "unknown");
  options.add_flag("reentrant", requirements.reentrant, "the holder can acquire the lock again");
  options.add_flag("shared", requirements.shared, "several readers can hold the lock together");
  options.add(
      "language", "L,...", requirements.languages,
      each_once(one_of<std::string>(
          {{"java", "Java"}, {"go", "Go"}, {"python", "Python"}, {"javascript", "JavaScript"}})),
      "languages of the clients: a lock without a library for each is not recommended, and "
      "the answer shows their code",
      "any");
  options.add(
      "today", "NAME", requirements.today, parsed(parse_today),
      "the strategy or library in use, such as redisson: what it costs, what breaks it, and "
      "what would be better",
      "none");
}

void ChooseOptions::declare(OptionList& options) {
  declare_files(options, files, "result files to judge by", "the built-in reference results");
  declare_requirements(options);
  options.heading("Measuring");
  options.add_flag(
      "measure", measure,
      "run the strategies that qualify, under that load and with the recommended settings, and "
      "rank them by the result");
  options.add("measure-time", "D", measure_time, duration(5s, 24h), "time limit of --measure");
  options.add("out", "FILE", output.out, path(), "result file of --measure",
              "results/runs/<id>.json");
  declare_servers(options, servers);
  options.add_flag("tls", tls, "measure with private servers that speak TLS");
  declare_clients(options, programs);
  options.heading("Answer");
  options.add_flag("why", why, "also the evidence: all strategies, plays, measurements");
  options.add("rank-by", "FIGURE", requirements.rank_by, parsed(parse_ranking_figure),
              "rank by this figure of a run, such as commands_per_section",
              "the one that fits the requirements");
  options.add("format", "NAME", output.format,
              one_of<Format>({{"table", Format::table}, {"json", Format::json}}),
              "format on stdout");
  options.only({"config"}, [&] { output.declare(options); });
}

void ChooseOptions::complete(const OptionList& /*options*/) {
  std::vector<std::string> names;  // all registered strategies are candidates
  take_clients(programs, servers, names);
}

Command choose_command() {
  return make_command<ChooseOptions>(
      {.task = kDecide,
       .summary = "Recommend a strategy and its settings, and say why.",
       .example = "lockbench choose --stores redis --survive crash --work-time-p99 200ms",
       .asks = "Which lock should I use, with which settings?",
       .over_ranks = true},
      choose_strategy);
}

}  // namespace lockbench::cli
