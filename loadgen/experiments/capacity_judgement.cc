#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "loadgen/experiments/capacity_experiment.h"
#include "loadgen/record/histogram.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/tables/text.h"

namespace lockbench::loadgen {
namespace {

using results::Decision;
using results::human_count;
using results::human_number;
using results::human_seconds;

// Tolerated sections that time out, are refused, fail, or still wait when a step is cut off: their
// full waits are unknown.
constexpr double kUnservedShare = 0.01;
constexpr double kFewestUnserved = 10;

double number(std::uint64_t count) { return static_cast<double>(count); }

/// Sections that were not granted the lock, and those that were due.
struct Unserved {
  double unserved = 0, due = 0;
  double failed = 0;  ///< of the unserved; not caused by the load: a server may be gone

  bool too_many() const { return unserved > kUnservedShare * due; }
  bool misses() const {
    const double by_load = unserved - failed;
    return by_load >= kFewestUnserved && by_load > kUnservedShare * due;
  }
  std::string text() const {
    return fmt::format("{} of {} sections timed out, were refused, failed or still waited",
                       human_count(unserved), human_count(due));
  }
};

Unserved unserved_in(const std::vector<const results::Run*>& runs) {
  Unserved sum;
  for (const results::Run* run : runs) {
    const results::Outcomes& o = run->outcomes;
    // Those that were granted after the step's end were served, too: they have their whole waits.
    const double unserved = number(o.timed_out + o.refused + o.failed + o.unknown + o.abandoned);
    sum.unserved += unserved;
    sum.failed += number(o.failed + o.unknown);
    sum.due += number(o.acquired) + unserved;
  }
  return sum;
}

/// A ruling over some of the runs, on all objectives, with the deciding one.
struct Judged {
  Decision decision = Decision::kept;
  results::Ruling ruling;
  const results::Threshold* objective = nullptr;
};

Judged judge_all(const std::vector<const results::Run*>& runs,
                 std::span<const results::Threshold> objective) {
  Judged worst;
  for (const results::Threshold& threshold : objective) {
    const results::Ruling ruling = results::judge(threshold, runs);
    // Missed weighs more than open, and open more than kept.
    const auto weight = [](Decision decision) {
      return decision == Decision::missed ? 2 : decision == Decision::open ? 1 : 0;
    };
    if (worst.objective != nullptr && weight(ruling.decision) <= weight(worst.decision)) continue;
    worst = {ruling.decision, ruling, &threshold};
  }
  const Unserved unserved = unserved_in(runs);
  if (unserved.too_many()) {
    if (worst.decision == Decision::kept) worst.decision = Decision::open;
    const bool enough = runs.size() >= results::kFewestBatches;
    if (enough && unserved.misses()) worst.decision = Decision::missed;
  }
  return worst;
}

std::string interval_text(const results::Threshold& objective, const results::Interval& figure) {
  const results::Unit unit = results::compared_figure(objective.figure).unit;
  const auto text = [unit](double value) { return results::human(value, unit); };
  const bool low = std::isfinite(figure.low), high = std::isfinite(figure.high);
  if (low && high) {
    return fmt::format("{} is {} to {}", objective.figure, text(figure.low), text(figure.high));
  }
  if (low) return fmt::format("{} is above {}", objective.figure, text(figure.low));
  if (high) return fmt::format("{} is below {}", objective.figure, text(figure.high));
  return fmt::format("{} is not known yet", objective.figure);
}

results::Distribution acquire_of(std::span<const results::Run> runs) {
  HistogramSnapshot complete, censored;
  for (const results::Run& run : runs) {
    complete.merge(to_snapshot(run.acquire));
    censored.merge(to_censored_snapshot(run.acquire));
  }
  return to_distribution(complete, censored);
}

// Utilisation from which a resource is a possible, a certain, and (for CPU and clients) the only
// limit.
constexpr double kBusy = 0.5, kSaturated = 0.8, kFull = 0.9;

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Utilisation of each resource that a section needs.
struct Shares {
  double lock = 0, store = 0, clients = 0, machine = 0;
  double store_of_machine = 0;
  bool store_known = true;
};

Shares shares_of(const LimitEvidence& evidence, const ServiceTimes& service) {
  const results::Run& run = evidence.run;
  const double rate = run.sections_per_second;
  Shares shares;
  shares.lock = service.lock_taken(rate, evidence.lock);
  // Of one core.
  const double server = run.server_cpu_seconds_per_section.value_or(0) * rate;
  shares.store_known = run.server_cpu_seconds_per_section.has_value();
  shares.store = server / evidence.store_cores;
  // Little (1961): busy clients = throughput × time that each section takes its client.
  const double taken = run.acquire_service.mean + run.hold.mean + run.release.mean;
  shares.clients = rate * taken / number(evidence.clients);
  const double generator = run.generator.cpu_share;
  shares.machine = run.generator.machine_cpu_share.value_or(generator + server / evidence.cores);
  shares.store_of_machine =
      shares.store_known ? server / evidence.cores : shares.machine - generator;
  return shares;
}

std::string lock_reason(const LimitEvidence& evidence, const ServiceTimes& service, double share) {
  const std::string handed =
      service.awaited_share > 0
          ? fmt::format(", and handoff {} after {} of the releases",
                        human_seconds(service.turnaround), percent(service.awaited_share))
          : "";
  return fmt::format(
      "with hold {}{}, at most {} sections/s are possible{}; {} were served, the lock was taken {} "
      "of the time",
      human_seconds(service.hold), handed,
      human_number(1 / (service.taken() * evidence.lock.busiest_key)),
      evidence.lock.busiest_key < 1 ? " over all keys" : " with one key",
      human_number(evidence.run.sections_per_second), percent(share));
}

/// If the store and the generator share this machine's cores, the heavier user of the CPU is the
/// limit.
Limit full_machine(const LimitEvidence& evidence, const Shares& shares) {
  const double generator = evidence.run.generator.cpu_share;
  const bool store = shares.store_of_machine > generator;
  const std::string others =
      shares.store_known
          ? fmt::format("{} for {}", percent(shares.store_of_machine), evidence.store)
          : fmt::format("{} for other programs, {} perhaps among them",
                        percent(shares.store_of_machine), evidence.store);
  return {store ? "store" : "generator",
          fmt::format("this machine's CPU was busy {} of the time, {} and {} for the generator{}",
                      percent(shares.machine), others, percent(generator),
                      store ? "" : ": not the lock's own limit")};
}

}  // namespace

StepRuling judge_step(const results::Run& run, std::span<const results::Threshold> objective) {
  std::vector<std::string> reasons;
  for (const results::Threshold& threshold : objective) {
    results::ThresholdOutcome outcome = results::evaluate(threshold, run);
    if (!outcome.kept()) reasons.push_back(std::move(outcome.reason));
  }
  if (const Unserved unserved = unserved_in({&run}); unserved.too_many()) {
    reasons.push_back(unserved.text());
  }
  if (run.outcomes.acquired == 0 && run.acquire.count == 0) {
    reasons.emplace_back("nothing was granted");
  }
  const bool met = reasons.empty();
  const std::vector<std::string> disturbances = results::disturbances(run);
  reasons.insert(reasons.end(), disturbances.begin(), disturbances.end());
  return {met, disturbances.empty(), fmt::format("{}", fmt::join(reasons, "; "))};
}

RateRuling judge_rate(double rate, std::span<const results::Run> runs,
                      std::span<const results::Threshold> objective, const LockShare& lock) {
  std::vector<const results::Run*> every, undisturbed;
  RateRuling ruling;
  results::CapacityRate& at = ruling.rate;
  at.rate = rate;
  at.steps = runs.size();
  for (const results::Run& run : runs) {
    const StepRuling step = judge_step(run, objective);
    every.push_back(&run);
    if (step.valid) undisturbed.push_back(&run);
    at.invalid_steps += step.valid ? 0 : 1;
    at.missed_steps += step.met ? 0 : 1;
  }
  Judged judged = judge_all(undisturbed, objective);
  if (judged.decision == Decision::open && undisturbed.size() < every.size()) {
    const Judged with_disturbed = judge_all(every, objective);
    if (with_disturbed.decision == Decision::kept) judged = with_disturbed;
    judged.ruling.samples = with_disturbed.ruling.samples;
    ruling.hindered = with_disturbed.decision == Decision::missed;
  }
  at.samples = static_cast<std::uint64_t>(judged.ruling.samples);
  const auto shown = [](double end) {
    return std::isfinite(end) ? end : std::numeric_limits<double>::quiet_NaN();
  };
  at.figure_low = shown(judged.ruling.figure.low);
  at.figure_high = shown(judged.ruling.figure.high);
  at.acquire = acquire_of(runs);
  const double samples = number(at.acquire.count + at.acquire.censored.count);
  ruling.enough =
      runs.size() >= results::kFewestBatches && samples >= results::samples_needed(objective);
  at.reason = interval_text(*judged.objective, judged.ruling.figure);
  if (const Unserved unserved = unserved_in(every); unserved.too_many()) {
    at.reason += "; " + unserved.text();
  }
  if (judged.decision == Decision::open && !ruling.enough) {
    const double left = results::samples_needed(objective) - samples;
    at.reason += fmt::format("; {} samples in {} step{} decide nothing yet", human_count(samples),
                             at.steps, at.steps == 1 ? "" : "s");
    if (left > 0) {
      at.reason +=
          fmt::format(": another {} take {}", human_count(left), human_seconds(left / rate));
    }
  }
  if (judged.decision == Decision::open && at.invalid_steps > 0) {
    at.reason += fmt::format("; {} of {} steps were disturbed, and cannot show a miss",
                             at.invalid_steps, at.steps);
  }
  const ServiceTimes service = service_times(runs);
  at.rho = service.lock_taken(service.per_second, lock);
  // Even so, short steps, which begin without a queue, may keep a long objective.
  const double ceiling = 1 / (service.taken() * lock.busiest_key);
  if (lock.excludes && judged.decision == Decision::kept && rate >= ceiling) {
    judged.decision = Decision::missed;
    at.reason +=
        fmt::format("; but no more than {} sections/s are possible", human_number(ceiling));
  }
  ruling.decision = judged.decision;
  at.decision = to_string(ruling.decision);
  return ruling;
}

Limit name_limit(const LimitEvidence& evidence) {
  const results::Run& run = evidence.run;
  const ServiceTimes service = service_times({&run, 1});
  const Shares shares = shares_of(evidence, service);
  if (evidence.steps > 0 && 2 * evidence.invalid_steps >= evidence.steps) {
    return {"generator",
            fmt::format("{} of {} steps were not valid, so this is not the lock's own limit: {}",
                        evidence.invalid_steps, evidence.steps, evidence.invalid_reason)};
  }
  if (!evidence.step_valid) {
    return {"generator",
            fmt::format("not the lock's own limit: {}", fmt::join(run.generator.reasons, "; "))};
  }
  const std::string lock = lock_reason(evidence, service, shares.lock);
  const std::string store =
      fmt::format("the CPU of {} was busy {} of the time{}", evidence.store, percent(shares.store),
                  evidence.store_cores > 1 ? "" : ", on the one core that it uses");
  if (shares.lock >= kSaturated) return {"lock", lock};
  if (shares.store >= kSaturated) return {"store", store};
  if (shares.machine >= kFull) return full_machine(evidence, shares);
  if (const double thread = run.generator.busiest_thread_share.value_or(0); thread >= kFull) {
    return {"generator", fmt::format("a thread of the load generator was busy {} of the time, not "
                                     "the lock's own limit: more --threads could reach more",
                                     percent(thread))};
  }
  if (shares.clients >= kFull) {
    return {"clients", fmt::format("{} of {} clients were busy (Little: {} sections/s of {} each): "
                                   "more --clients could reach more",
                                   human_number(shares.clients * number(evidence.clients)),
                                   evidence.clients, human_number(run.sections_per_second),
                                   human_seconds(shares.clients * number(evidence.clients) /
                                                 run.sections_per_second))};
  }
  if (shares.lock >= kBusy && shares.lock > shares.store) return {"lock", lock};
  if (shares.store >= kBusy) return {"store", store};
  // An objective that allows hardly any waiting is missed long before the lock is fully utilised.
  // A client that finds the lock held waits, on average, for half a hold.
  const double one_wait = service.hold / 2 + service.turnaround;
  const bool waits = run.acquire.count > 0 && run.acquire.p99 >= one_wait;
  if (evidence.lock.excludes && waits && shares.lock >= std::max(0.01, shares.store)) {
    return {"lock",
            fmt::format("waiting for one other client takes {} on average, acquire p99 was {}; {}",
                        human_seconds(one_wait), human_seconds(run.acquire.p99), lock)};
  }
  const std::string store_cpu =
      shares.store_known ? "was busy " + percent(shares.store) : "is unknown";
  return {
      "unknown",
      fmt::format("the lock was taken {} of the time, the CPU of {} {}, clients {}, this machine "
                  "{}: none is near its limit",
                  percent(shares.lock), evidence.store, store_cpu, percent(shares.clients),
                  percent(shares.machine))};
}

}  // namespace lockbench::loadgen
