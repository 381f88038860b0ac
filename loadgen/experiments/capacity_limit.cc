#include "loadgen/experiments/capacity_limit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "loadgen/record/certificate.h"
#include "results/tables/units.h"

namespace lockbench::loadgen {
namespace {

using results::human_count;
using results::human_number;
using results::human_seconds;

// Sections that may be under way or waiting at the end of a run without a growing backlog.
constexpr double kUnservedShare = 0.02, kUnservedAnyway = 4;
// Acquisitions without a grant are not in the percentiles: with more of them these would be too
// low.
constexpr double kGivenUpShare = 0.001;
constexpr std::uint64_t kFewSamples = 100;
// Utilisation from which a resource is a possible, a certain, and (for CPU and clients) the only
// limit.
constexpr double kBusy = 0.5, kSaturated = 0.8, kFull = 0.9;

double all(std::uint64_t count) { return static_cast<double>(count); }

/// Why the objective was missed, or the load not served; empty if neither.
std::string failure_of(const results::Run& run, std::span<const results::Threshold> objective) {
  const results::Outcomes& o = run.outcomes;
  const double given_up = all(o.timed_out + o.refused + o.failed + o.unknown);
  const double due = all(o.acquired) + given_up + all(o.abandoned);
  std::vector<std::string> reasons;
  for (const results::Threshold& threshold : objective) {
    for (const auto& outcome : results::evaluate(threshold, {&run, 1})) {
      if (outcome.kept) continue;
      reasons.push_back(outcome.measured ? threshold.text + " missed" : outcome.reason);
    }
  }
  if (given_up > kGivenUpShare * due) {
    reasons.push_back(fmt::format("{} of {} sections timed out, were refused or failed",
                                  human_count(given_up), human_count(due)));
  }
  if (all(o.abandoned) > kUnservedShare * due + kUnservedAnyway) {
    reasons.push_back(fmt::format("a backlog grew: {} of {} sections still waited at the end",
                                  human_count(all(o.abandoned)), human_count(due)));
  }
  if (o.acquired == 0) reasons.emplace_back("nothing was granted");
  return fmt::format("{}", fmt::join(reasons, "; "));
}

double server_cpu_share(const results::Run& run) {
  if (!run.server_cpu_seconds_per_section) return std::numeric_limits<double>::quiet_NaN();
  return *run.server_cpu_seconds_per_section * run.sections_per_second;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Utilisation of each resource that a section needs.
struct Shares {
  double lock = 0, store = 0, clients = 0, machine = 0;
};

Shares shares_of(const LimitEvidence& evidence) {
  const results::Run& run = evidence.run;
  const double rate = run.sections_per_second;
  Shares shares;
  if (evidence.excludes) shares.lock = rate * evidence.busiest_key_share * occupancy(run);
  const double server = server_cpu_share(run);
  if (std::isfinite(server)) shares.store = server / evidence.store_cores;
  // Little (1961): busy clients = throughput × time that each section takes its client.
  const double taken = run.acquire_service.mean + run.hold.mean + run.release.mean;
  shares.clients = rate * taken / all(evidence.clients);
  shares.machine = run.generator.cpu_share + (std::isfinite(server) ? server / evidence.cores : 0);
  return shares;
}

std::string lock_reason(const LimitEvidence& evidence, double share) {
  const results::Run& run = evidence.run;
  const double ceiling = 1 / (occupancy(run) * evidence.busiest_key_share);
  const bool waited = run.turnaround.count > 0;
  return fmt::format(
      "with hold {} and {} {}, at most {} sections/s are possible{}; {} were served, the lock was "
      "taken "
      "{} of the time",
      human_seconds(run.hold.mean), waited ? "handoff" : "release",
      human_seconds(waited ? run.turnaround.mean : run.release.mean), human_number(ceiling),
      evidence.busiest_key_share < 1 ? " over all keys" : " with one key",
      human_number(run.sections_per_second), percent(share));
}

}  // namespace

double occupancy(const results::Run& run) {
  return run.hold.mean + (run.turnaround.count > 0 ? run.turnaround.mean : run.release.mean);
}

results::CapacityStep judge_step(const results::Run& run, std::string_view purpose, double rate,
                                 std::span<const results::Threshold> objective) {
  results::CapacityStep step{.purpose = std::string(purpose),
                             .rate = rate,
                             .achieved = run.sections_per_second,
                             .acquire = run.acquire,
                             .server_cpu_share = server_cpu_share(run),
                             .generator_cpu_share = run.generator.cpu_share};
  step.reason = failure_of(run, objective);
  step.met = step.reason.empty();
  std::vector<std::string> invalid;
  for (const std::string& reason : run.generator.reasons) {
    // A load that the clients cannot produce is a result, as waits count from the schedule.
    if (!reason.starts_with(kNotTheLoadAskedFor)) invalid.push_back(reason);
  }
  step.valid = invalid.empty();
  if (!step.valid) {
    const std::string what = fmt::format("{}", fmt::join(invalid, "; "));
    step.reason += (step.met ? "" : "; ") + what;
  } else if (step.met && run.acquire.count < kFewSamples) {
    step.reason = fmt::format("only {} samples", run.acquire.count);
  }
  return step;
}

Limit name_limit(const LimitEvidence& evidence) {
  const results::Run& run = evidence.run;
  const Shares shares = shares_of(evidence);
  if (evidence.steps > 0 && 2 * evidence.invalid_steps >= evidence.steps) {
    return {"generator",
            fmt::format("{} of {} steps were not valid, so this is not the lock's own limit: {}",
                        evidence.invalid_steps, evidence.steps, evidence.invalid_reason)};
  }
  if (!evidence.step_valid) {
    return {"generator",
            fmt::format("not the lock's own limit: {}", fmt::join(run.generator.reasons, "; "))};
  }
  if (shares.lock >= kSaturated) return {"lock", lock_reason(evidence, shares.lock)};
  if (shares.store >= kSaturated) {
    return {"store", fmt::format("the store's CPU was busy {} of the time{}", percent(shares.store),
                                 evidence.store_cores > 1 ? "" : ", on the one core that it uses")};
  }
  // Where both run on this machine, they share its cores: the one that uses more of them is the
  // limit.
  const double store_of_machine = shares.machine - run.generator.cpu_share;
  if (shares.machine >= kFull && store_of_machine > run.generator.cpu_share) {
    return {"store", fmt::format("this machine's CPU was busy {} of the time, {} for the store and "
                                 "{} for the generator",
                                 percent(shares.machine), percent(store_of_machine),
                                 percent(run.generator.cpu_share))};
  }
  if (shares.machine >= kFull) {
    return {"generator",
            fmt::format("this machine's CPU was busy {} of the time, {} for the generator: not "
                        "the lock's own limit",
                        percent(shares.machine), percent(run.generator.cpu_share))};
  }
  if (shares.clients >= kFull) {
    return {"clients", fmt::format("{} of {} clients were busy (Little: {} sections/s of {} each): "
                                   "more --clients could reach more",
                                   human_number(shares.clients * all(evidence.clients)),
                                   evidence.clients, human_number(run.sections_per_second),
                                   human_seconds(shares.clients * all(evidence.clients) /
                                                 run.sections_per_second))};
  }
  if (shares.lock >= kBusy && shares.lock > shares.store) {
    return {"lock", lock_reason(evidence, shares.lock)};
  }
  if (shares.store >= kBusy) {
    return {"store", fmt::format("the store's CPU was busy {} of the time", percent(shares.store))};
  }
  // An objective that allows hardly any waiting is missed long before the lock is fully utilised.
  if (evidence.excludes && shares.lock >= shares.store && run.acquire.count > 0 &&
      shares.lock >= 0.01 && run.acquire.p99 >= occupancy(run)) {
    return {"lock", fmt::format("waiting for one other client takes {}, acquire p99 was {}; {}",
                                human_seconds(occupancy(run)), human_seconds(run.acquire.p99),
                                lock_reason(evidence, shares.lock))};
  }
  return {"unknown",
          fmt::format("the lock was taken {} of the time, the store's CPU was busy {}, clients {}, "
                      "this machine {}: none is near its limit",
                      percent(shares.lock), percent(shares.store), percent(shares.clients),
                      percent(shares.machine))};
}

}  // namespace lockbench::loadgen
