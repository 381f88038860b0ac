#include <algorithm>
#include <array>

#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "results/file/json.h"
#include "results/file/loads.h"

namespace lockbench::cli {
namespace {

struct CompareOptions {
  static constexpr std::string_view kCommand = "compare";
  std::vector<std::string> files;
  bool run = false;
  std::optional<int> repeat;
  std::vector<results::Regression> fail_on;
  double confidence = 0.95;
  bool strict_gate = false, force = false;
  OutputOptions output;

  CompareOptions() { output.judges = true; }

  void declare(OptionList& options) {
    declare_files(options, files,
                  "two result files; the second is compared with the first. With --run: two TOML "
                  "files with the options of run as keys");
    options.add_flag("run", run,
                     "measure the two configurations first, in turn, and save both results");
    options.add("repeat", "N", repeat, whole_number(1, 1000),
                "with --run: runs of each strategy and configuration", "the files', or 10");
    options.add("fail-on", "EXPR", fail_on,
                parsed(results::parse_regression, &results::Regression::text),
                "exit 99 on a significant regression beyond this bound, or if the figure is "
                "missing: acquire.p99>+10%, sections_per_second<-5%, handoff.p50>+200us");
    options.add_flag("strict-gate", strict_gate,
                     "exit 99 also if such a regression cannot be excluded");
    options.add_flag("force", force,
                     "compare even if workload or environment differ; with --fail-on also accept "
                     "interrupted results and invalid runs");
    options.add("confidence", "P", confidence, number(0.5, 0.999),
                "confidence of all findings together, and of each interval alone");
    options.only({"format", "columns", "quiet"}, [&] { output.declare(options); });
  }

  void complete(const OptionList& options) const {
    options.needs("repeat", run, "--run");
    options.needs("strict-gate", !strict_gate || !fail_on.empty(), "--fail-on");
    const bool junit = output.format == Format::junit;
    if ((output.format == Format::json || junit) && !output.columns.empty()) {
      throw UsageError("--columns: {} has no columns to choose: use --format csv",
                       junit ? "JUnit" : "JSON");
    }
    if (junit && fail_on.empty()) throw UsageError("--format junit requires --fail-on");
    if (files.size() == 2) return;
    throw UsageError("expected two {}: lockbench compare {} (given: {})",
                     run ? "TOML files" : "result files",
                     run ? "--run a.toml b.toml" : "A.json B.json", files.size());
  }
};

struct ResultPair {
  results::Result a, b;
  std::string file_a, file_b;
  int code = 0;  ///< exit code of the runs, if any
};

// compare --run

constexpr int kUsualRepeat = 10;

struct Configuration {
  std::string file;
  RunOptions options;
  std::vector<Selected> selected;
};

/// Returns what `work` returns. Its usage errors name the file.
template <class Work>
auto in_file(const std::string& file, const Work& work) {
  try {
    return work();
  } catch (const UsageError& error) {
    if (error.message().starts_with(file + ": ")) throw;
    throw UsageError("{}: {}", file, error.message());
  }
}

Configuration read_configuration(const std::string& file, const CompareOptions& options) {
  const int least_repeat =
      static_cast<int>(results::repetitions_of_gates(options.fail_on.size(), options.confidence));
  Configuration read_in{.file = file, .options = {}, .selected = {}};
  OptionList list = options_of(read_in.options);
  std::vector<std::string> args{"--config=" + file};
  if (options.repeat) args.push_back(fmt::format("--repeat={}", *options.repeat));
  read(read_in.options, list, args);
  int& repeat = read_in.options.workload.repeat;
  if (!list.given("repeat")) {
    repeat = kUsualRepeat;
    auto& command = read_in.options.output.command;
    command.insert(command.end(), {"--repeat", fmt::format("{}", kUsualRepeat)});
  }
  if (repeat < least_repeat) {
    throw UsageError("at least {} repetitions are needed, and it has {}: use --repeat {}",
                     least_repeat, repeat, std::max(kUsualRepeat, least_repeat));
  }
  if (read_in.options.output.out == kStdout) {
    throw UsageError("out: must be a file, as stdout shows the comparison");
  }
  read_in.selected = select_for_load(read_in.options);
  return read_in;
}

void check_apart(const Configuration& a, const Configuration& b) {
  const auto refusal = [&](const std::string& what) {
    return UsageError("{} and {} {}", a.file, b.file, what);
  };
  const auto check = [&](const char* option, const std::string& one, const std::string& other) {
    if (one.empty() || other.empty() || !same_file(one, other)) return;
    throw refusal(fmt::format("have the same {}: {}", option, one));
  };
  check("out", a.options.output.out, b.options.output.out);
  check("report", a.options.output.report, b.options.output.report);
  check("hdr", a.options.hdr, b.options.hdr);
  check("history", a.options.history, b.options.history);
  const auto& listen_a = a.options.metrics.listen;
  const auto& listen_b = b.options.metrics.listen;
  if (listen_a && listen_b && listen_a->port != 0 &&
      listen_a->to_string() == listen_b->to_string()) {
    throw refusal("have the same metrics-listen: " + listen_a->to_string());
  }
  const bool common = std::ranges::any_of(a.selected, [&](const Selected& one) {
    return std::ranges::find(b.selected, one.strategy, &Selected::strategy) != b.selected.end();
  });
  if (!common) throw refusal("have no strategy in common");
}

/// If the clients of one go through proxies, so do the other's: only the proxies' effect differs.
void share_proxies(Configuration& a, Configuration& b) {
  const auto passes = [](const Configuration& one) {
    const deployment::Request request = request_of(one.options);
    return request.lines || request.rtt > Duration::zero();
  };
  if (passes(a) == passes(b)) return;
  Configuration& direct = passes(a) ? b : a;
  if (request_of(direct.options).far_rtt > Duration::zero()) {
    throw UsageError("{}: load alone cannot be compared with {}, which uses proxies: give rtt",
                     direct.file, passes(a) ? a.file : b.file);
  }
  direct.options.through_proxies = true;
}

/// Each strategy of `a` next to the same of `b`.
std::vector<loadgen::RunPlan> in_turn(const std::vector<loadgen::RunPlan>& a,
                                      const std::vector<loadgen::RunPlan>& b) {
  std::vector<loadgen::RunPlan> all;
  for (std::size_t point = 0; point < std::max(a.size(), b.size()); ++point) {
    std::vector<const loadgen::RunPlan*> both;
    std::vector<const Descriptor*> strategies;
    for (const auto* plans : {&a, &b}) {
      if (point >= plans->size()) continue;
      both.push_back(&(*plans)[point]);
      for (const Descriptor* one : both.back()->strategies) {
        if (std::ranges::count(strategies, one) == 0) strategies.push_back(one);
      }
    }
    for (const Descriptor* strategy : strategies) {
      for (const loadgen::RunPlan* plan : both) {
        if (std::ranges::count(plan->strategies, strategy) == 0) continue;
        all.push_back(*plan);
        all.back().strategies = {strategy};
      }
    }
  }
  return all;
}

using Both = std::array<std::unique_ptr<Measurement>, 2>;

/// Measures until done or stopped. Returns the exit code.
int measure_in_turn(const Both& both, Session& session) {
  Measurement &a = *both[0], &b = *both[1];
  std::vector<loadgen::RunPlan> plans = in_turn(a.plans(), b.plans());
  for (loadgen::RunPlan& plan : plans) {
    // The other configuration's idle servers must not count as foreign programs.
    plan.private_cpu.all = [&] { return a.servers().cpu_seconds() + b.servers().cpu_seconds(); };
  }
  Console& console = session.console();
  announce(plans, console);
  ProgressView progress(console, BootClock::now);
  const loadgen::RunReport report = loadgen::run_plans(plans, progress, session.stop());
  for (const auto& one : both) one->take(report, console);
  const int code_a = a.finish(false, console);
  const int code = gravest(code_a, b.finish(false, console));
  for (const auto& one : both) one->linger(console, session.stop());
  return code;
}

/// Measures both in turn, each on its own servers, so that the state of the machine affects both
/// alike: A, B, then B, A, and so on. Saves both results. A mistake in a file is a UsageError
/// before any server is started.
ResultPair measure_pair(const CompareOptions& options) {
  const auto configuration = [&](const std::string& file) {
    return in_file(file, [&] { return read_configuration(file, options); });
  };
  Configuration a = configuration(options.files[0]), b = configuration(options.files[1]);
  check_apart(a, b);
  share_proxies(a, b);

  Session session(OutputOptions{.quiet = options.output.quiet});
  Both both;
  for (std::size_t i = 0; i < both.size(); ++i) {
    const Configuration& one = i == 0 ? a : b;
    in_file(one.file,
            [&] { both.at(i) = std::make_unique<Measurement>(one.options, one.selected); });
  }
  for (std::size_t i = 0; i < both.size(); ++i) {
    const std::string& file = i == 0 ? a.file : b.file;
    if (in_file(file, [&] { return both.at(i)->deploy(session); })) continue;
    return {{}, {}, "", "", session.interrupted_early()};
  }
  const int code = measure_in_turn(both, session);
  return {both[0]->result(), both[1]->result(), both[0]->out(), both[1]->out(), code};
}

// The comparison

results::Result load_runs(const std::string& path) {
  results::Result result = must(results::load(path));
  if (result.runs.empty()) throw UsageError("{}: it contains no runs to compare", path);
  return result;
}

results::ResultComparison compared(const ResultPair& pair, const CompareOptions& options) {
  const std::vector<std::string> differing = results::incompatibilities(pair.a, pair.b);
  if (!differing.empty() && !options.force && !options.run) {
    throw UsageError("{} and {} are not comparable: {} (--force compares them anyway)", pair.file_a,
                     pair.file_b, results::in_one_line(differing));
  }
  auto comparison = results::compare(pair.a, pair.b,
                                     {.confidence = options.confidence,
                                      .fail_on = options.fail_on,
                                      .with_invalid = options.force});
  if (comparison.in_both == 0) {
    throw UsageError("{} and {} have no strategy in common", pair.file_a, pair.file_b);
  }
  // After a measurement, shows what there is.
  if (!comparison.undecided.empty() && !options.run) {
    throw UsageError("{} and {}: {}", pair.file_a, pair.file_b, comparison.undecided);
  }
  if (!comparison.gates_undecided.empty() && !options.run) {
    throw UsageError("--fail-on: {}", comparison.gates_undecided);
  }
  if (!options.fail_on.empty() && !comparison.doubts.empty() && !options.force && !options.run) {
    throw UsageError("--fail-on: {} (--force compares them anyway)",
                     fmt::join(comparison.doubts, "; "));
  }
  if (!differing.empty()) {
    comparison.notes.push_back(fmt::format("they differ in {}", results::in_one_line(differing)));
  }
  if (options.run) {
    comparison.notes.push_back(fmt::format("A is {}, B is {}", pair.file_a, pair.file_b));
  }
  return comparison;
}

int show(const results::ResultComparison& comparison, const CompareOptions& options,
         Console& console) {
  const auto text = [&]() -> tl::expected<std::string, std::string> {
    if (options.output.format == Format::json) return results::to_json(comparison);
    if (options.output.format == Format::junit) {
      return to_junit("lockbench compare", checks_of(comparison, options.strict_gate));
    }
    return results::render(comparison_block(comparison), look_of(options.output));
  };
  Ending ending;
  ending.errors = !print_text(must(text(), "--columns"));
  for (const std::string& line : gate_lines(comparison)) console.warn(line);
  for (const std::string* why : {&comparison.undecided, &comparison.gates_undecided}) {
    if (!why->empty()) console.warn("not decided: " + *why);
  }
  const bool cannot_tell = !comparison.undecided.empty() || !comparison.gates_undecided.empty();
  ending.undecided = cannot_tell || std::ranges::any_of(comparison.gates, [](const auto& gate) {
                       return !gate.undecided.empty();
                     });
  ending.threshold_missed = std::ranges::any_of(comparison.gates, [&](const results::Gate& gate) {
    using enum results::Gate::Outcome;
    return gate.outcome != kept && (gate.outcome != not_excluded || options.strict_gate);
  });
  return exit_code_of(ending);
}

int compare(const CompareOptions& options) {
  const auto& files = options.files;
  ResultPair pair;
  if (options.run) {
    must(results::render(results::comparison_block({}), look_of(options.output)), "--columns");
    pair = measure_pair(options);
  } else {
    pair = {load_runs(files[0]), load_runs(files[1]), files[0], files[1]};
  }
  if (pair.a.runs.empty() || pair.b.runs.empty()) return pair.code;
  Console console(stderr, is_terminal(stderr), options.output.quiet);
  try {
    return gravest(pair.code, show(compared(pair, options), options, console));
  } catch (const UsageError& error) {
    if (pair.code == exit_code::kFine) throw;
    console.warn(error.message());
    return pair.code;
  }
}

}  // namespace

Command compare_command() {
  return make_command<CompareOptions>(
      {.task = kCompareResults,
       .summary = "Compare two results, or two configurations, with significance.",
       .example = "lockbench compare before.json after.json --fail-on 'acquire.p99>+10%'",
       .over_ranks = true},
      compare);
}

}  // namespace lockbench::cli
