#include "tests/support/simulated_results.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

namespace lockbench::test {
namespace {

using results::Distribution;
using results::Run;

/// Lognormal around the median, in a hundred buckets of equal share.
Distribution distribution(double median, std::uint64_t count) {
  Distribution made{.count = count, .relative_error = 1.0 / 128};
  const double quartile = 0.3;
  for (int i = 1; i <= 99; i += 2) {
    const double upper = median * std::exp(quartile * std::tan((i / 100.0 - 0.5) * 2.5));
    made.buckets.push_back({upper, count / 50});
  }
  made.p50 = median;
  made.p99 = made.buckets.back().upper;
  made.max = made.p99;
  made.mean = 1.1 * median;
  made.stddev = median;
  return made;
}

class Simulator {
 public:
  Simulator(const Simulation& simulation, std::uint64_t seed)
      : simulation_(simulation), random_(seed) {}

  results::Result result() {
    results::Result result;
    result.id = "simulated";
    result.started_at = "2025-01-01T12:00:00Z";
    const double call = draw(simulation_.between_calls);
    for (int repetition = 1; repetition <= simulation_.repetitions; ++repetition) {
      for (int strategy = 0; strategy < simulation_.strategies; ++strategy) {
        result.runs.push_back(run(strategy, repetition, call));
      }
    }
    return result;
  }

 private:
  double draw(double deviation) {
    return std::normal_distribution<double>(0, 1)(random_) * deviation;
  }

  Run run(int strategy, int repetition, double call) {
    Run run;
    run.strategy = fmt::format("strategy-{}", strategy);
    run.backend = "redis";
    run.repetition = repetition;
    run.duration_seconds = simulation_.seconds;
    const double luck = call + draw(simulation_.between_runs);
    double mood = draw(simulation_.within_runs);
    double total = 0;
    for (int second = 0; second < simulation_.seconds; ++second) {
      const double remembered = simulation_.memory;
      mood = remembered * mood +
             draw(simulation_.within_runs) * std::sqrt(1 - remembered * remembered);
      const double slow = std::exp(luck + mood) * (1 + simulation_.slowdown);
      const auto sections = static_cast<std::uint64_t>(20'000 / slow);
      run.series.push_back({.t = second + 1.0,
                            .sections = sections,
                            .acquire_p50 = 5e-5 * slow,
                            .acquire_p99 = 1e-3 * slow});
      run.sections += sections;
      total += slow;
    }
    fill(run, total / simulation_.seconds);
    return run;
  }

  void fill(Run& run, double slow) {
    const auto own = [&] { return slow * std::exp(draw(simulation_.between_runs / 2)); };
    run.sections_per_second = static_cast<double>(run.sections) / run.duration_seconds;
    run.outcomes.acquired = run.sections;
    run.acquire = distribution(5e-5 * own(), run.sections);
    run.acquire.p99 = 1e-3 * own() * own();
    run.handoff = distribution(2e-5 * own(), run.sections);
    run.hold = distribution(1e-6, run.sections);
    run.release = distribution(1e-5 * own(), run.sections);
    run.commands_per_section = 2;
    run.attempts_per_grant = 1;
    run.server_cpu_seconds_per_section = 1e-5 * own();
    run.fairness.jain = 0.9 * std::exp(draw(0.02));
  }

  const Simulation simulation_;
  std::mt19937_64 random_;
};

}  // namespace

results::Result simulated_result(const Simulation& simulation, std::uint64_t seed) {
  return Simulator(simulation, seed).result();
}

}  // namespace lockbench::test
