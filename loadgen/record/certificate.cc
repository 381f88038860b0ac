#include "loadgen/record/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockbench::loadgen {
namespace {

// Above this share of all cores, the generator is the bottleneck.
constexpr double kHighestCpuShare = 0.9;
// Late wake-ups matter if they exceed timer noise and this share of the measured wait.
constexpr double kHighestLagShare = 0.2;
constexpr Duration kLagNoise = std::chrono::milliseconds(1);
constexpr double kClockJumpSeconds = 0.05;
constexpr double kOverrunNoise = 0.05, kHighestOverrunShare = 0.05;

/// Whether the lag is a considerable part of the measured wait for the lock.
bool distorts(const HistogramSnapshot& lag, const HistogramSnapshot& acquire) {
  const Duration late = lag.percentile(0.99);
  const auto measured = static_cast<double>(acquire.percentile(0.99).count());
  return late > kLagNoise && static_cast<double>(late.count()) > kHighestLagShare * measured;
}

std::string p99_text(const HistogramSnapshot& lag) {
  return fmt::format("{} µs",
                     std::chrono::round<std::chrono::microseconds>(lag.percentile(0.99)).count());
}

}  // namespace

results::Generator certify(const RunEvidence& evidence) {
  results::Generator generator;
  generator.cpu_seconds = evidence.cpu_seconds;
  if (evidence.wall_seconds > 0) {
    generator.cpu_share = evidence.cpu_seconds / (evidence.wall_seconds * evidence.cores);
  }
  const auto invalid = [&](std::string reason) {
    generator.valid = false;
    generator.reasons.push_back(std::move(reason));
  };

  // A lock in this process uses the generator's CPU by design.
  if (evidence.has_store && generator.cpu_share > kHighestCpuShare) {
    invalid(fmt::format("the load generator used {:.0f} % of the CPU", 100 * generator.cpu_share));
  }
  if (distorts(evidence.wake_lag, evidence.acquire)) {
    invalid(fmt::format("idle clients started late: p99 {} after the schedule",
                        p99_text(evidence.wake_lag)));
  } else if (distorts(evidence.schedule_lag, evidence.acquire)) {
    invalid(
        fmt::format("{}: all clients were busy, so sections began late, p99 {} after the schedule",
                    kNotTheLoadAskedFor, p99_text(evidence.schedule_lag)));
  }
  if (evidence.overrun_seconds > kOverrunNoise + kHighestOverrunShare * evidence.wall_seconds) {
    invalid(fmt::format("the runner noticed the end {:.2f} s late: the machine was overloaded",
                        evidence.overrun_seconds));
  }
  if (evidence.overflowed_samples > 0) {
    invalid(
        fmt::format("{} samples were above the histograms' range", evidence.overflowed_samples));
  }
  if (std::abs(evidence.wall_clock_jump_seconds) > kClockJumpSeconds) {
    invalid(fmt::format("the clock jumped by {:.3f} s", evidence.wall_clock_jump_seconds));
  }
  for (const std::string& server : evidence.restarted_servers) invalid(server);
  return generator;
}

}  // namespace lockbench::loadgen
