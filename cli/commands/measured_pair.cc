#include "cli/commands/measured_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "cli/commands/finish.h"
#include "cli/commands/measurement.h"
#include "cli/console/deploy.h"
#include "cli/console/progress.h"

namespace lockbench::cli {
namespace {

constexpr int kUsualRepeat = 10;

struct Configuration {
  std::string file;
  RunOptions options;
  std::vector<Selected> selected;
};

/// What `work` returns. Its usage errors name the file.
template <class Work>
auto in_file(const std::string& file, const Work& work) {
  try {
    return work();
  } catch (const UsageError& error) {
    if (error.message().starts_with(file + ": ")) throw;
    throw UsageError("{}: {}", file, error.message());
  }
}

Configuration read_configuration(const std::string& file, const PairOptions& options) {
  Configuration read_in{.file = file, .options = {}, .selected = {}};
  OptionList list = options_of(read_in.options);
  std::vector<std::string> args{"--config=" + file};
  if (options.repeat) args.push_back(fmt::format("--repeat={}", *options.repeat));
  read(read_in.options, list, args);
  if (!list.given("repeat")) {
    read_in.options.workload.repeat = kUsualRepeat;
    auto& command = read_in.options.output.command;
    command.insert(command.end(), {"--repeat", fmt::format("{}", kUsualRepeat)});
  }
  if (read_in.options.workload.repeat < options.least_repeat) {
    throw UsageError("{} repetitions or more are needed, and it has {}: --repeat {}",
                     options.least_repeat, read_in.options.workload.repeat,
                     std::max(kUsualRepeat, options.least_repeat));
  }
  if (read_in.options.output.out == kStdout) {
    throw UsageError("out: stdout shows the comparison: a file is needed");
  }
  read_in.selected = select_for_load(read_in.options);
  return read_in;
}

void check_apart(const Configuration& a, const Configuration& b) {
  const auto refusal = [&](const std::string& what) {
    return UsageError("{} and {} {}", a.file, b.file, what);
  };
  const auto same = [](const std::string& one, const std::string& other) {
    return !one.empty() && !other.empty() && same_file(one, other);
  };
  const OutputOptions& out_a = a.options.output;
  const OutputOptions& out_b = b.options.output;
  if (same(out_a.out, out_b.out)) throw refusal("have the same out: " + out_a.out);
  if (same(out_a.report, out_b.report)) throw refusal("have the same report: " + out_a.report);
  const auto& listen_a = a.options.metrics.listen;
  const auto& listen_b = b.options.metrics.listen;
  if (listen_a && listen_b && listen_a->port != 0 &&
      listen_a->to_string() == listen_b->to_string()) {
    throw refusal("have the same metrics-listen: " + listen_a->to_string());
  }
  const bool common = std::any_of(a.selected.begin(), a.selected.end(), [&](const Selected& one) {
    return std::any_of(b.selected.begin(), b.selected.end(),
                       [&](const Selected& other) { return one.strategy == other.strategy; });
  });
  if (!common) throw refusal("have no strategy in common");
}

/// If one passes proxies, the other does, too: so only what the proxies do differs.
void share_proxies(Configuration& a, Configuration& b) {
  const auto passes = [](const Configuration& one) {
    const deployment::Request request = request_of(one.options);
    return request.lines || request.rtt > Duration::zero();
  };
  if (passes(a) == passes(b)) return;
  Configuration& direct = passes(a) ? b : a;
  if (request_of(direct.options).far_rtt > Duration::zero()) {
    throw UsageError("{}: load alone cannot be compared with {}, which passes proxies: give rtt",
                     direct.file, passes(a) ? a.file : b.file);
  }
  direct.options.through_proxies = true;
}

/// Each strategy of `a` next to the same of `b`.
std::vector<loadgen::RunPlan> in_turn(const std::vector<loadgen::RunPlan>& a,
                                      const std::vector<loadgen::RunPlan>& b) {
  std::vector<loadgen::RunPlan> all;
  const auto add = [&](const std::vector<loadgen::RunPlan>& plans, std::size_t point,
                       const Descriptor* strategy) {
    if (point >= plans.size()) return;
    const auto& strategies = plans[point].strategies;
    if (std::find(strategies.begin(), strategies.end(), strategy) == strategies.end()) return;
    all.push_back(plans[point]);
    all.back().strategies = {strategy};
  };
  for (std::size_t point = 0; point < std::max(a.size(), b.size()); ++point) {
    std::vector<const Descriptor*> strategies;
    for (const auto* plans : {&a, &b}) {
      if (point >= plans->size()) continue;
      for (const Descriptor* one : (*plans)[point].strategies) {
        if (std::find(strategies.begin(), strategies.end(), one) == strategies.end()) {
          strategies.push_back(one);
        }
      }
    }
    for (const Descriptor* strategy : strategies) {
      add(a, point, strategy);
      add(b, point, strategy);
    }
  }
  return all;
}

using Both = std::array<std::unique_ptr<Measurement>, 2>;

/// Measures, until a stop comes. Returns the exit code.
int measure_in_turn(const Both& both, Session& session) {
  Measurement &a = *both[0], &b = *both[1];
  std::vector<loadgen::RunPlan> plans = in_turn(a.plans(), b.plans());
  for (loadgen::RunPlan& plan : plans) {
    // The idle servers of the other one are no other programs.
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

}  // namespace

ResultPair measure_pair(const PairOptions& options) {
  const auto configuration = [&](const std::string& file) {
    return in_file(file, [&] { return read_configuration(file, options); });
  };
  Configuration a = configuration(options.a), b = configuration(options.b);
  check_apart(a, b);
  share_proxies(a, b);

  const auto measurement = [](const Configuration& one) {
    return in_file(one.file,
                   [&] { return std::make_unique<Measurement>(one.options, one.selected); });
  };
  Both made{measurement(a), measurement(b)};
  // Before the measurements, whose metrics and servers have threads.
  Session session(OutputOptions{.quiet = options.quiet});
  const Both both = std::move(made);
  for (std::size_t i = 0; i < both.size(); ++i) {
    const std::string& file = i == 0 ? a.file : b.file;
    if (in_file(file, [&] { return both.at(i)->deploy(session); })) continue;
    return {{}, {}, "", "", session.interrupted_early()};
  }
  const int code = measure_in_turn(both, session);
  return {both[0]->result(), both[1]->result(), both[0]->out(), both[1]->out(), code};
}

}  // namespace lockbench::cli
