#include "cli/commands/measured_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
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

UsageError naming(const std::string& file, const UsageError& error) {
  const bool named = error.message.starts_with(file + ": ");
  return {named ? error.message : fmt::format("{}: {}", file, error.message)};
}

tl::expected<Configuration, UsageError> read_configuration(const std::string& file,
                                                           const PairOptions& options) {
  Configuration read_in{.file = file, .options = {}, .selected = {}};
  OptionList list = options_of(read_in.options);
  std::vector<std::string> args{"--config=" + file};
  if (options.repeat) args.push_back(fmt::format("--repeat={}", *options.repeat));
  if (auto done = read(read_in.options, list, args); !done) {
    return tl::unexpected(naming(file, done.error()));
  }
  if (!list.given("repeat")) read_in.options.workload.repeat = kUsualRepeat;
  if (read_in.options.workload.repeat < options.least_repeat) {
    return refused("{}: --fail-on needs {} repetitions or more, and it has {}: --repeat {}", file,
                   options.least_repeat, read_in.options.workload.repeat,
                   std::max(kUsualRepeat, options.least_repeat));
  }
  if (read_in.options.output.out == kStdout) {
    return refused("{}: out: stdout shows the comparison: a file is needed", file);
  }
  auto selected = select_for_load(read_in.options);
  if (!selected) return tl::unexpected(naming(file, selected.error()));
  read_in.selected = *std::move(selected);
  return read_in;
}

tl::expected<void, UsageError> check_apart(const Configuration& a, const Configuration& b) {
  const auto error = [&](const std::string& what) {
    return refused("{} and {} {}", a.file, b.file, what);
  };
  const auto same = [](const std::string& one, const std::string& other) {
    return !one.empty() && one == other;
  };
  const OutputOptions& out_a = a.options.output;
  const OutputOptions& out_b = b.options.output;
  if (same(out_a.out, out_b.out)) return error("have the same out: " + out_a.out);
  if (same(out_a.report, out_b.report)) return error("have the same report: " + out_a.report);
  if (same(a.options.hdr, b.options.hdr)) return error("have the same hdr: " + a.options.hdr);
  const bool common = std::any_of(a.selected.begin(), a.selected.end(), [&](const Selected& one) {
    return std::any_of(b.selected.begin(), b.selected.end(),
                       [&](const Selected& other) { return one.strategy == other.strategy; });
  });
  if (!common) return error("have no strategy in common");
  return {};
}

/// If one passes proxies, the other does, too: so only what the proxies do differs.
tl::expected<void, UsageError> share_proxies(Configuration& a, Configuration& b) {
  const auto passes = [](const Configuration& one) {
    const deployment::Request request = request_of(one.options);
    return request.lines || request.rtt > Duration::zero();
  };
  if (passes(a) == passes(b)) return {};
  Configuration& direct = passes(a) ? b : a;
  if (request_of(direct.options).far_rtt > Duration::zero()) {
    return refused("{}: load alone cannot be compared with {}, which passes proxies: give rtt",
                   direct.file, passes(a) ? a.file : b.file);
  }
  direct.options.through_proxies = true;
  return {};
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

tl::expected<ResultPair, UsageError> measure_pair(const PairOptions& options) {
  auto a = read_configuration(options.a, options);
  if (!a) return tl::unexpected(a.error());
  auto b = read_configuration(options.b, options);
  if (!b) return tl::unexpected(b.error());
  if (auto apart = check_apart(*a, *b); !apart) return tl::unexpected(apart.error());
  if (auto shared = share_proxies(*a, *b); !shared) return tl::unexpected(shared.error());

  Both made;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Configuration& one = i == 0 ? *a : *b;
    auto measurement = Measurement::make(one.options, one.selected);
    if (!measurement) return tl::unexpected(naming(one.file, measurement.error()));
    made.at(i) = *std::move(measurement);
  }
  // Before the measurements, whose metrics and servers have threads.
  Session session(options.quiet);
  const Both both = std::move(made);
  for (std::size_t i = 0; i < both.size(); ++i) {
    const auto deployed = both.at(i)->deploy(session);
    if (!deployed) return tl::unexpected(naming(i == 0 ? a->file : b->file, deployed.error()));
    if (!*deployed) return ResultPair{{}, {}, "", "", session.interrupted_early()};
  }
  const int code = measure_in_turn(both, session);
  return ResultPair{both[0]->result(), both[1]->result(), both[0]->out(), both[1]->out(), code};
}

}  // namespace lockbench::cli
