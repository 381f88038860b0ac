#include "simulate/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "results/stats/load_figures.h"

namespace lockbench::simulate {
namespace {

using Runs = std::vector<const results::Run*>;

/// Of an acquisition and a release together, in seconds.
struct Times {
  double p50 = 0, p99 = 0;
  double servers = 0;  ///< their CPU time; 0: not known
};

Runs runs_alone(const results::Result& result, std::string_view strategy, double rtt) {
  Runs runs;
  for (const results::Run& run : result.runs) {
    constexpr double kSame = 1e-9;
    const bool alone = run.load.name == loadgen::to_string(loadgen::NamedLoad::alone);
    const bool same = std::abs(run.load.rtt_seconds - rtt) < kSame;
    if (run.strategy == strategy && alone && same) runs.push_back(&run);
  }
  return runs;
}

std::optional<Times> times_of(const Runs& runs) {
  const auto sum = [&](const char* one, const char* other) -> double {
    const auto a = results::median_figure(runs, one), b = results::median_figure(runs, other);
    return a && b ? a->value + b->value : 0;
  };
  Times times{.p50 = sum("acquire.p50", "release.p50"), .p99 = sum("acquire.p99", "release.p99")};
  const auto servers = results::median_figure(runs, "server_cpu_seconds_per_section");
  if (servers) times.servers = servers->value;
  const bool known = times.p50 > 0 && std::isfinite(times.p99) && times.p99 >= times.p50;
  return known ? std::optional(times) : std::nullopt;
}

/// One client without a rival, as under the load `alone`, and nothing goes wrong.
Plan alone(const Plan& plan, Duration rtt) {
  constexpr std::uint64_t kSections = 2000;
  Plan one{.strategy = plan.strategy, .redis = plan.redis};
  one.workload.clients = 1;
  one.workload.iterations = kSections;
  one.workload.warmup = {};
  one.workload.duration = std::chrono::minutes(10);
  one.workload.nodes = plan.workload.nodes;
  one.workload.strategy = plan.workload.strategy;
  one.workload.rtt = rtt;
  return one;
}

tl::expected<Times, std::string> play(const Plan& plan) {
  const auto outcome = simulate(plan, 1);
  if (!outcome) return tl::unexpected(outcome.error());
  if (outcome->sections == 0) return tl::unexpected(std::string("it was not granted alone"));
  const auto at = [&](double share) {
    return seconds(outcome->acquired.percentile(share)) +
           seconds(outcome->released.percentile(share));
  };
  return Times{
      .p50 = at(0.5),
      .p99 = at(0.99),
      .servers = seconds(outcome->servers_worked) / static_cast<double>(outcome->sections)};
}

Duration to_duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

/// By how much to change what takes `have`, so that it takes `want` sooner or later. Only a part of
/// that time depends on it, so that each step comes nearer and none goes too far.
double nearer(double want, double have) {
  constexpr double kFactor = 4, kLeast = 1e-12;
  return std::clamp(want / std::max(have, kLeast), 1 / kFactor, kFactor);
}

/// Sets the servers' time for a request, on which their work depends linearly.
tl::expected<void, std::string> fit_servers(Plan& plan, double wanted) {
  constexpr Duration kTried = std::chrono::microseconds(10);
  std::array<double, 2> seen{};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    plan.calibration->per_request = kTried * static_cast<int>(i);
    const auto played = play(plan);
    if (!played) return tl::unexpected(played.error());
    seen[i] = played->servers;
  }
  const double per_request = (wanted - seen[0]) / std::max(seen[1] - seen[0], 1e-9);
  plan.calibration->per_request = to_duration(seconds(kTried) * std::max(0.0, per_request));
  return {};
}

tl::expected<Calibration, std::string> fit(Plan plan, const Times& wanted) {
  constexpr int kSteps = 12;
  constexpr double kLeast = 100e-9, kMost = 1, kLeastSpread = 1.01, kMostSpread = 100, kNear = 0.02;
  double median = 25e-6, spread = 4;  // of the delay: its p99 in relation to its median
  Calibration& now = plan.calibration.emplace();
  now.delay = DurationDistribution::constant(to_duration(median));
  if (wanted.servers > 0) {
    if (auto set = fit_servers(plan, wanted.servers); !set) return tl::unexpected(set.error());
  }
  for (int step = 0; step < kSteps; ++step) {
    now.delay = DurationDistribution::lognormal(to_duration(median), to_duration(median * spread));
    const auto seen = play(plan);
    if (!seen) return tl::unexpected(seen.error());
    const double longer = nearer(wanted.p50, seen->p50);
    const double tail = nearer(wanted.p99 / wanted.p50 - 1, seen->p99 / seen->p50 - 1);
    if (std::abs(longer - 1) < kNear && std::abs(tail - 1) < kNear) break;
    median = std::clamp(median * longer, kLeast, kMost);
    spread = std::clamp(1 + (spread - 1) * tail, kLeastSpread, kMostSpread);
  }
  return now;
}

}  // namespace

tl::expected<Calibration, std::string> calibrate(const Plan& plan,
                                                 const results::Result& measured) {
  Duration rtt = plan.workload.rtt;
  Runs runs = runs_alone(measured, plan.strategy->name, seconds(rtt));
  if (runs.empty() && rtt > Duration::zero()) {
    rtt = {};
    runs = runs_alone(measured, plan.strategy->name, 0);
  }
  if (runs.empty()) return tl::unexpected(std::string("the file has no run of it alone"));
  const auto wanted = times_of(runs);
  if (!wanted) return tl::unexpected(std::string("its runs alone in the file granted too little"));
  return fit(alone(plan, rtt), *wanted);
}

}  // namespace lockbench::simulate
