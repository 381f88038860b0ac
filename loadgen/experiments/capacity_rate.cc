#include "loadgen/experiments/capacity_rate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "loadgen/record/histogram.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/tables/units.h"

namespace lockbench::loadgen {
namespace {

using results::Decision;
using results::human_count;
using results::human_number;

// Sections that may time out, be refused, fail, or still wait when a step is cut off: their waits
// are not known to the end.
constexpr double kUnservedShare = 0.01;
constexpr double kFewestUnserved = 10;

double number(std::uint64_t count) { return static_cast<double>(count); }

/// Sections that were not granted the lock, and those that were due.
struct Unserved {
  double unserved = 0, due = 0;
  double failed =
      0;  ///< of the unserved: perhaps a server is gone, which tells nothing of the load

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
    const double unserved = number(o.timed_out + o.refused + o.failed + o.unknown + o.abandoned);
    sum.unserved += unserved;
    sum.failed += number(o.failed + o.unknown);
    sum.due += number(o.acquired) + unserved;
  }
  return sum;
}

/// A ruling over some of the runs, on all objectives, with the one that decides.
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

/// Of the time of all runs, weighted by their lengths.
double rho_of(std::span<const results::Run> runs, const ServiceTimes& service, double share) {
  double sections = 0, time = 0;
  for (const results::Run& run : runs) {
    sections += number(run.sections);
    time += run.duration_seconds;
  }
  return time > 0 ? std::min(1.0, sections * share * service.taken() / time) : 0;
}

}  // namespace

double server_cpu_share(const results::Run& run) {
  if (!run.server_cpu_seconds_per_section) return std::numeric_limits<double>::quiet_NaN();
  return *run.server_cpu_seconds_per_section * run.sections_per_second;
}

results::CapacityStep judge_step(const results::Run& run, std::string_view purpose, double rate,
                                 std::span<const results::Threshold> objective) {
  results::CapacityStep step{.purpose = std::string(purpose),
                             .rate = rate,
                             .achieved = run.sections_per_second,
                             .acquire = run.acquire,
                             .server_cpu_share = server_cpu_share(run),
                             .generator_cpu_share = run.generator.cpu_share};
  std::vector<std::string> reasons;
  for (const results::Threshold& threshold : objective) {
    results::ThresholdOutcome outcome = results::evaluate(threshold, run);
    if (!outcome.kept()) reasons.push_back(std::move(outcome.reason));
  }
  if (const Unserved unserved = unserved_in({&run}); unserved.too_many()) {
    reasons.push_back(unserved.text());
  }
  if (run.outcomes.acquired == 0) reasons.emplace_back("nothing was granted");
  step.met = reasons.empty();
  const std::vector<std::string> disturbances = results::disturbances(run);
  step.valid = disturbances.empty();
  reasons.insert(reasons.end(), disturbances.begin(), disturbances.end());
  step.reason = fmt::format("{}", fmt::join(reasons, "; "));
  return step;
}

RateRuling judge_rate(double rate, std::span<const results::Run> runs,
                      std::span<const results::Threshold> objective, const LockShare& lock) {
  std::vector<const results::Run*> every, undisturbed;
  RateRuling ruling;
  results::CapacityRate& at = ruling.rate;
  at.rate = rate;
  at.steps = runs.size();
  for (const results::Run& run : runs) {
    const results::CapacityStep step = judge_step(run, "", rate, objective);
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
  if (judged.decision == Decision::open && at.invalid_steps > 0) {
    at.reason += fmt::format("; {} of {} steps were disturbed, and cannot show a miss",
                             at.invalid_steps, at.steps);
  }
  const ServiceTimes service = service_times(runs);
  if (lock.excludes) at.rho = rho_of(runs, service, lock.busiest_key);
  // Short steps from an empty queue may keep a long objective even so.
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

ServiceTimes service_times(std::span<const results::Run> runs) {
  ServiceTimes sum;
  double holds = 0, turnarounds = 0, sections = 0, awaited = 0;
  for (const results::Run& run : runs) {
    holds += number(run.hold.count);
    sum.hold += number(run.hold.count) * run.hold.mean;
    turnarounds += number(run.turnaround.count);
    sum.turnaround += number(run.turnaround.count) * run.turnaround.mean;
    sections += number(run.sections);
    awaited += number(run.awaited_releases);
  }
  const auto per = [](double total, double count) { return count > 0 ? total / count : 0; };
  sum.hold = per(sum.hold, holds);
  sum.turnaround = per(sum.turnaround, turnarounds);
  sum.awaited_share = std::min(1.0, per(awaited, sections));
  return sum;
}

}  // namespace lockbench::loadgen
