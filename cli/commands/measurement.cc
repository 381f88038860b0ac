#include "cli/commands/measurement.h"

#include <algorithm>
#include <array>

#include "cli/commands/commands.h"
#include "cli/console/ranks.h"
#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/file/save.h"
#include "results/stats/load_figures.h"
#include "results/tables/formats.h"
#include "strategies/carrier.h"
#include "testbed/servers/machine.h"

namespace lockbench::cli {
namespace {

/// The options that are labels of lockbench_run_info.
constexpr std::array kRunFacts = {"clients", "keys", "hold",  "think",    "rate", "arrival",
                                  "ttl",     "wait", "renew", "resource", "rtt"};

exporter::Facts facts_of(const LoadOptions& options, const std::string& run_id) {
  exporter::Facts facts;
  facts.run.emplace_back("run", run_id);
  auto record = run_record(options);
  leave_to_the_loads(options, record);
  for (const char* name : kRunFacts) {
    facts.run.emplace_back(name, results::value_text(record.at(name)));
  }
  facts.build = build_facts();
  facts.deployments = options.metrics.deployments;
  if (Ranks::joined() != nullptr) facts.rank = "0";
  return facts;
}

constexpr std::chrono::seconds kBetweenLines{5};

std::string_view name_of(loadgen::Progress::Phase phase) {
  constexpr std::array<std::string_view, 4> kNames{"connecting", "warming_up", "measuring",
                                                   "draining"};
  return kNames.at(static_cast<std::size_t>(phase));
}

std::string phase_text(const loadgen::Progress& progress) {
  using Phase = loadgen::Progress::Phase;
  if (progress.phase == Phase::connecting) {
    return fmt::format("connecting {}/{} clients", progress.clients_connected, progress.clients);
  }
  if (progress.phase == Phase::draining) return "draining";
  return fmt::format("{} {:.0f} %", progress.phase == Phase::measuring ? "measuring" : "warming up",
                     std::clamp(progress.done, 0.0, 1.0) * 100);
}

int run(const RunOptions& options) { return measure(options, select_for_load(options)); }

struct OverviewOptions : RunOptions {
  static constexpr std::string_view kCommand = "overview";
  bool all = false;

  OverviewOptions() {
    workload.duration = std::chrono::seconds(8);
    workload.settles_after = std::chrono::seconds(2);
    // A client that starves ends no run before this.
    workload.acquire_timeout = std::chrono::seconds(10);
  }

  void declare(OptionList& options) {
    options.only({"strategies", "threads", "duration", "warmup", "contended-grants", "repeat",
                  "store-timeout"},
                 [&] { LoadOptions::declare(options); });
    declare_servers(options, servers);
    options.at("strategies").default_text = "a typical one of each family";
    options.without({"strict"}, [&] { output.declare(options); });
    options.heading("Load");
    options.add_flag("all", all, "every strategy, the flawed ones last").effect = Effect::command;
  }

  void complete(const OptionList& options) {
    using loadgen::NamedLoad;
    loads = {NamedLoad::alone, NamedLoad::demand, NamedLoad::saturated};
    if (all && !strategies.empty()) {
      throw UsageError("--all cannot be combined with names of strategies");
    }
    LoadOptions::complete(options);
  }
};

/// A lock that cannot be released safely, or that never ends if its holder dies.
bool is_flawed(const Descriptor& strategy) {
  const Traits& traits = strategy.traits;
  return store_traits(strategy.backend).servers &&
         (traits.release_check != OwnerCheck::atomic || traits.expiry == Expiry::none);
}

/// The typical strategy of each family; with `all`, the others after them.
std::vector<Selected> usual(bool all) {
  std::vector<Selected> selected;
  for (const Descriptor* strategy : all_strategies()) {
    if (all || strategy->typical) selected.push_back({strategy, false});
  }
  std::ranges::stable_sort(selected, {}, [](const Selected& one) {
    return std::pair(is_flawed(*one.strategy), !one.strategy->typical);
  });
  return selected;
}

int overview(const OverviewOptions& given) {
  RunOptions options = given;
  if (!options.strategies.empty()) return measure(options, select_for_load(options));
  std::vector<Selected> selected = usual(given.all);
  // For the result.
  options.strategies = results::each_of(
      selected, [](const Selected& one) { return std::string(one.strategy->name); });
  return measure(options, std::move(selected));
}

}  // namespace

void leave_to_the_loads(const LoadOptions& options, OptionRecord& record) {
  if (options.points().size() <= 1) return;
  const loadgen::Decided& decided = options.decided;
  if (!decided.clients) record["clients"] = nullptr;
  if (!decided.hold) record["hold"] = nullptr;
  if (!decided.rate) record["rate"] = nullptr;
  if (!decided.rtt) record["rtt"] = nullptr;
}

Metrics Metrics::start(const LoadOptions& options, const std::vector<Selected>& selected,
                       const std::string& run_id, Console& console) {
  Metrics metrics;
  const MetricsOptions& asked = options.metrics;
  metrics.linger_ = asked.linger;
  std::vector<const Descriptor*> strategies;
  for (const Selected& one : selected) {
    if (one.strategy->not_built.empty()) strategies.push_back(one.strategy);
  }
  const auto redis = options.servers_of("redis");
  const int nodes = redis.empty() ? options.workload.nodes : static_cast<int>(redis.size());
  metrics.metrics_ = std::make_shared<exporter::RunMetrics>(strategies, nodes);
  if (!asked.ready_at_once) {
    for (const Descriptor* strategy : strategies) {
      metrics.metrics_->set_failing(*strategy, "no lock has been granted yet");
    }
  }
  if (!asked.listen) return metrics;
  metrics.endpoint_ =
      must(exporter::serve(metrics.metrics_, facts_of(options, run_id), *asked.listen),
           "--metrics-listen");
  console.note(
      fmt::format("metrics on http://{}/metrics", metrics.endpoint_->address().to_string()));
  return metrics;
}

void Metrics::linger(Console& console, const std::stop_token& stop) {
  if (linger_ <= Duration::zero() || stop.stop_requested()) return;
  console.note(
      fmt::format("metrics are served for another {}; Ctrl-C ends it", format_duration(linger_)));
  Carrier::current().wait(nullptr, BootClock::now() + linger_, stop);
}

Measurement::Measurement(const RunOptions& options, std::vector<Selected> selected)
    : options_(options), selected_(std::move(selected)), result_(begin_result(options.output)) {
  result_.workload = workload_record(options_);
  if (options_.through_proxies) result_.workload["through_proxies"] = true;
  // Each run records its own values.
  leave_to_the_loads(options_, result_.workload);
  out_ = out_path(options_.output, result_);
  if (options_.output.resume) resume();
  if (!options_.history.empty()) must(results::check_writable(options_.history), "--history");
  if (options_.hdr.empty()) return;
  // The directory is created if necessary.
  must(results::check_writable(std::filesystem::path(options_.hdr) / "lockbench.hgrm"), "--hdr");
}

void Measurement::resume() {
  if (options_.output.out.empty() || out_ == kStdout) throw UsageError("--resume needs --out FILE");
  if (!std::filesystem::exists(out_)) return;
  resumed_ = must(results::load(out_), "--resume");
  result_.runs.swap(resumed_->runs);
  std::erase_if(result_.runs, [](const results::Run& run) { return run.interrupted.has_value(); });
  check_resumed();
}

void Measurement::check_resumed() const {
  if (!resumed_) return;
  auto differences = results::incompatibilities(*resumed_, result_);
  if (resumed_->lockbench.commit != result_.lockbench.commit) {
    differences.push_back(
        fmt::format("commit {} and {}", resumed_->lockbench.commit, result_.lockbench.commit));
  }
  const double before = results::workload_number(*resumed_, "seed").value_or(0);
  const double now = results::workload_number(result_, "seed").value_or(0);
  if (before != now) differences.push_back(fmt::format("seed {} and {}", before, now));
  if (differences.empty()) return;
  throw UsageError("--resume: {} was measured differently: {}", out_, differences.front());
}

bool Measurement::deploy(Session& session) {
  metrics_ = Metrics::start(options_, selected_, result_.id, session.console());
  servers_ = session.deploy(options_, selected_, result_.skipped);
  if (!servers_) return false;
  stop_ = session.stop();
  faults_.emplace(*servers_, options_.workload.rtt);
  result_.environment.servers = servers_->facts;
  // Their versions are known only now.
  check_resumed();
  if (!options_.history.empty()) {
    history_ = must(history::Log::open(options_.history), "--history");
  }
  result_.interrupted = true;  // until it is over
  file_.emplace(out_, session.console());
  maker_ = maker_of(out_, result_, options_.metrics);
  return true;
}

loadgen::RunPlan Measurement::plan_of(const loadgen::Workload& point) {
  const bool far = point.rtt != options_.workload.rtt;
  loadgen::RunPlan plan = plan_on(*servers_, result_.id);
  plan.workload = point;
  // Without contention the cost is steady, so a short time is enough.
  if (point.settles_after && point.load == to_string(loadgen::NamedLoad::alone)) {
    plan.workload.duration = std::min(point.duration, *point.settles_after);
  }
  plan.is_done = [this, load = loadgen::load_of(point)](const Descriptor& strategy,
                                                        int repetition) {
    return std::ranges::any_of(result_.runs, [&](const results::Run& run) {
      return run.strategy == strategy.name && run.repetition == repetition && run.load == load;
    });
  };
  if (far) plan.endpoints = servers_->far_endpoints;
  plan.servers_stay = [this](const Descriptor& strategy) {
    return !options_.servers_of(strategy.backend).empty() || options_.counter_redis;
  };
  for (const Selected& one : selected_) {
    // A lock without a server uses no network, and the user's servers have their own.
    if (far && urls_of(*one.strategy, plan.endpoints).empty()) continue;
    plan.strategies.push_back(one.strategy);
  }
  if (point.rtt > Duration::zero() || options_.through_proxies) {
    plan.bytes_moved = [this] { return servers_->bytes_moved(); };
  }
  plan.maker = maker_;
  plan.watcher = metrics_->watcher();
  plan.history = history_.get();
  plan.faults = options_.faults;
  plan.fault_target = &*faults_;
  plan.run_over = [this](const results::Run& run) {
    result_.runs.push_back(run);
    const std::string busy = results::disturbed_from_the_start(result_.runs);
    if (!busy.empty()) file_->console().warn(busy);
    if (stop_.stop_requested()) result_.runs.back().interrupted = true;
    file_->keep_step(result_);
  };
  return plan;
}

std::vector<loadgen::RunPlan> Measurement::plans() {
  return results::each_of(options_.points(),
                          [this](const loadgen::Workload& point) { return plan_of(point); });
}

void Measurement::leave_to_each(const std::vector<std::string>& options) {
  for (std::string key : options) {
    if (!key.starts_with("--")) continue;
    key.erase(0, 2);
    std::ranges::replace(key, '-', '_');
    const auto found = result_.workload.find(key);
    if (found != result_.workload.end()) found->second = nullptr;
  }
}

void Measurement::take(const loadgen::RunReport& report, Console& console) {
  result_.interrupted = report.interrupted;
  for (const loadgen::NotStarted& one : report.not_started) {
    if (one.run_id != result_.id) continue;
    errors_ = true;
    console.warn(fmt::format("{}{}: {}", results::kDidNotStart, one.strategy, one.reason));
    result_.skipped.push_back({one.strategy, std::string(results::kDidNotStart) + one.reason});
  }
  errors_ |= faults_->failed();
  if (history_) errors_ |= !close_history(*history_, console);
  for (const auto& [strategy, named] : selected_) {
    if (!result_.interrupted) break;
    const auto known =
        std::ranges::count(result_.runs, strategy->name, &results::Run::strategy) +
        std::ranges::count(result_.skipped, strategy->name, &results::Skipped::strategy);
    if (known == 0) result_.skipped.push_back({std::string(strategy->name), "interrupted"});
  }
  file_->keep(result_);
}

int Measurement::finish(bool show, Console& console) {
  bool exported = true;
  if (!options_.hdr.empty()) {
    for (const auto& [name, text] : results::hgrm_files(result_)) {
      exported &= save_file(std::filesystem::path(options_.hdr) / name, text, console);
    }
  }
  const auto [missed, undecided, checks] =
      unkept_thresholds(options_.thresholds, result_, selected_);
  Ending ending = ending_of(result_);
  ending.strict = options_.output.strict;
  ending.errors |= errors_ || !exported;
  ending.nothing_granted = ending.nothing_granted && !options_.allow_no_grants;
  ending.threshold_missed = !missed.empty();
  ending.undecided = !undecided.empty();
  std::optional<std::string> text;
  if (!show) {
    text.emplace();
  } else if (options_.output.format == Format::junit) {
    auto all = results::checks_of(result_);
    all.insert(all.end(), checks.begin(), checks.end());
    text = results::to_junit("lockbench run", all);
  }
  const int code = cli::finish(result_, options_.output, *file_, ending, text);
  // After the table, so that they are the last lines.
  for (const std::string& line : missed) console.warn(line);
  for (const std::string& line : undecided) console.warn(line);
  return code;
}

int measure(const RunOptions& options, std::vector<Selected> selected) {
  Session session(options.output);
  Console& console = session.console();
  Measurement measurement(options, std::move(selected));
  if (!measurement.deploy(session)) return session.interrupted_early();

  ProgressView progress(console, BootClock::now);
  const std::vector<loadgen::RunPlan> plans = measurement.plans();
  announce(plans, console);
  measurement.take(loadgen::run_plans(plans, progress, session.stop()), console);
  const int code = measurement.finish(true, console);
  measurement.linger(console, session.stop());
  return code;
}

void announce(const std::vector<loadgen::RunPlan>& plans, Console& console) {
  constexpr double kShort = 20;
  double all = 0;  // in seconds: thousands of runs of a week would overflow a Duration
  for (const loadgen::RunPlan& plan : plans) {
    const loadgen::Workload& load = plan.workload;
    int runs = 0;
    for (const Descriptor* strategy : plan.strategies) {
      for (int repetition = 1; repetition <= load.repeat; ++repetition) {
        if (!plan.is_done(*strategy, repetition)) ++runs;
      }
    }
    all += runs * seconds(load.warmup + load.duration + kBesidesLoad);
  }
  if (all > kShort) {
    console.note(fmt::format("this takes up to {}, and longer while clients still wait",
                             results::human_seconds(all)));
  }
}

std::string progress_text(const loadgen::Progress& progress) {
  std::string text =
      fmt::format("{}{}{} ({}/{}) {}", progress.strategy, progress.load.empty() ? "" : " ",
                  progress.load, progress.run, progress.runs, phase_text(progress));
  if (progress.phase != loadgen::Progress::Phase::connecting) {
    text += fmt::format(", {} sections/s", results::human_number(progress.sections_per_second));
  }
  if (progress.failed > 0) text += fmt::format(", {} failed", progress.failed);
  return text;
}

void ProgressView::on_progress(const loadgen::Progress& progress) {
  std::string line;
  if (console_.terminal()) {
    console_.status(progress_text(progress));
  } else if (const TimePoint now = now_(); now >= next_line_) {
    next_line_ = now + kBetweenLines;
    line = progress_text(progress);
  }
  console_.event("progress",
                 {{"strategy", std::string(progress.strategy)},
                  {"load", std::string(progress.load)},
                  {"run", std::int64_t{progress.run}},
                  {"runs", std::int64_t{progress.runs}},
                  {"phase", std::string(name_of(progress.phase))},
                  {"done", std::clamp(progress.done, 0.0, 1.0)},
                  {"clients_connected", std::int64_t{progress.clients_connected}},
                  {"sections_per_second", progress.sections_per_second},
                  {"failed", static_cast<std::int64_t>(progress.failed)}},
                 line);
}

void ProgressView::on_warning(const std::string& line) { console_.warn("warning: " + line); }

Command run_command() {
  return make_command<RunOptions>(
      {.task = kMeasure,
       .summary = "Measure and audit strategies under a load; show and save the result.",
       .example = "lockbench run 'redis-*' --clients 32 --hold 2ms --duration 10s",
       .asks = "How fast is a lock under my load, how long do clients wait, and is it correct?",
       .over_ranks = true},
      run);
}

Command overview_command() {
  return make_command<OverviewOptions>(
      {.task = kMeasure,
       .summary = "Compare locks under three loads: cost, waits, and whether clients starve.",
       .example = "lockbench overview redis-queue redlock etcd",
       .over_ranks = true},
      overview);
}

}  // namespace lockbench::cli
