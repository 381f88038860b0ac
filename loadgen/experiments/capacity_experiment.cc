#include "loadgen/experiments/capacity_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "results/stats/figures.h"
#include "results/tables/text.h"

namespace lockbench::loadgen {
namespace {

using results::Decision;
using results::human_count;
using results::human_number;
using results::human_seconds;
using results::samples_needed;

using Clock = std::chrono::steady_clock;

/// The shortest step and closed loop, in holds: enough to show the waits that holds cause.
constexpr int kFewestHolds = 20;
constexpr Duration kClosedLoop = std::chrono::seconds(1);
constexpr Duration kShortestSearch = std::chrono::minutes(5);
constexpr Duration kLongestSearch = std::chrono::minutes(30);
/// Rates near the capacity that a search measures.
constexpr double kRates = 8;
/// So long, in seconds, a search looks roughly where the answer lies, and says so.
constexpr double kBracket = 25;

Duration of_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Duration fewest_holds(const Workload& workload) { return kFewestHolds * workload.hold.mean(); }

/// Sections a second that the hold allows, if sections of the same key exclude each other.
double ceiling_of(const Workload& workload) {
  const double busiest = seconds(workload.hold.mean()) * busiest_key_share(workload);
  return busiest > 0 ? 1 / busiest : std::numeric_limits<double>::infinity();
}

/// The least time to decide that a rate is kept: for its samples, or for its steps, each with a
/// warm-up of the same length.
double least_time(const Workload& workload, std::span<const results::Threshold> objective) {
  const double steps =
      static_cast<double>(results::kFewestBatches) * 2 * seconds(fewest_holds(workload));
  return std::max(steps, samples_needed(objective) / ceiling_of(workload));
}

using Length = StepLength;

/// A step, whose waits may end after it under the same load. Those that last longer than the
/// objective allows, by a second, are cut off: they miss it anyway.
Workload step_of(const CapacityPlan& plan, double rate, Length length) {
  Workload step = plan.run.workload;
  step.rate = rate;
  step.duration = std::max(step.duration, fewest_holds(step));
  // Enough for a tenth of the samples that the objective needs; arrivals are random.
  constexpr double kSpare = 1.1;
  if (length == Length::full) {
    const double samples = kSpare * samples_needed(plan.objective) / 10;
    step.duration = std::max(step.duration, of_seconds(samples / rate));
  }
  // Warms up, as the first sections meet no queue.
  step.warmup = std::max(step.warmup, fewest_holds(step));
  double longest_wait = 1;
  for (const results::Threshold& one : plan.objective) {
    const bool time = results::compared_figure(one.figure).unit == results::Unit::seconds;
    if (time) longest_wait = std::max(longest_wait, one.bound + 1);
  }
  step.run_out = std::min(of_seconds(longest_wait), step.longest_run_out());
  return step;
}

double step_seconds(const CapacityPlan& plan, double rate, Length length) {
  const Workload step = step_of(plan, rate, length);
  return seconds(step.duration + step.warmup);
}

/// Clients that ask again as soon as they have been served.
Workload closed_loop_of(const CapacityPlan& plan) {
  Workload workload = plan.run.workload;
  workload.rate.reset();
  workload.run_out = Duration::zero();  // its waits show nothing
  workload.duration = std::max(std::min(kClosedLoop, workload.duration), fewest_holds(workload));
  return workload;
}

class Experiment {
 public:
  Experiment(const CapacityPlan& plan, const OnStep& on_step, std::stop_token stop)
      : plan_(plan),
        on_step_(on_step),
        stop_(std::move(stop)),
        lock_{busiest_key_share(plan.run.workload), plan.strategy->traits.promises_exclusion} {
    results::Capacity& capacity = measured_.capacity;
    capacity.strategy = plan.strategy->name;
    for (const results::Threshold& threshold : plan.objective) {
      capacity.objective += (capacity.objective.empty() ? "" : " and ") + threshold.text;
    }
    capacity.clients = static_cast<std::uint64_t>(plan.run.workload.clients);
    capacity.keys = static_cast<std::uint64_t>(plan.run.workload.key_count());
    capacity.limit = "unknown";
    capacity.highest = std::numeric_limits<double>::quiet_NaN();
  }

  CapacityMeasured measure() {
    if (const auto served = closed_loop()) {
      search(*served);
      name_what_limits();
    } else {
      measured_.capacity.limit_reason = "nothing could be measured";
    }
    results::Capacity& capacity = measured_.capacity;
    capacity.planned_rate = plan_.planned_rate;
    if (plan_.planned_rate && capacity.lowest > 0) {
      capacity.utilisation = *plan_.planned_rate / capacity.lowest;
      capacity.headroom = capacity.lowest / *plan_.planned_rate - 1;
    }
    capacity.keys_needed = keys_needed(capacity, plan_.run.workload);
    return std::move(measured_);
  }

 private:
  std::optional<results::Run> run(const Workload& workload) {
    if (stop_.stop_requested()) return std::nullopt;
    RunPlan load = plan_.run;
    load.strategies = {plan_.strategy};
    load.workload = workload;
    load.workload.repeat = 1;
    load.workload.seed += static_cast<std::uint64_t>(++runs_);
    // Warms up only once, as the servers stay.
    if (runs_ > 1) load.warms_up = {};
    RunReport report = run_once(std::move(load), runs_, on_step_, stop_);
    for (const results::Skipped& failed : report.not_started) complain(failed.reason);
    if (report.runs.empty()) return std::nullopt;
    results::Run& result = report.runs.front();
    note_audit(result.audit);
    if (!result.errors.empty()) complain(result.errors.front());
    // A run that a stop cut short is not a step.
    if (stop_.stop_requested()) return std::nullopt;
    return std::move(result);
  }

  /// The runs are too short for a verdict of their own.
  void note_audit(const results::Audit& audit) {
    if (audit.verdict == results::Verdict::unaudited) return;
    contended_grants_ += audit.contended_grants;
    std::optional<bool>& violated = measured_.capacity.violated;
    if (!audit.saw_no_violation()) violated = true;
    if (!violated && contended_grants_ >= plan_.run.workload.contended_grants) violated = false;
  }

  void complain(const std::string& why) {
    auto& errors = measured_.errors;
    const std::string line = fmt::format("{}: {}", plan_.strategy->name, why);
    if (std::find(errors.begin(), errors.end(), line) == errors.end()) errors.push_back(line);
  }

  void say(const std::string& what) { on_step_(fmt::format("{}: {}", plan_.strategy->name, what)); }

  /// The rate from which the search begins, in sections per second; nothing if it could not be
  /// measured.
  std::optional<double> closed_loop() {
    const Workload workload = closed_loop_of(plan_);
    const double longest = seconds(plan_.time);
    say(fmt::format("takes up to {}: a closed loop, and a search of {}",
                    human_seconds(longest + seconds(workload.duration + workload.warmup)),
                    human_seconds(longest)));
    const auto result = run(workload);
    if (!result) return std::nullopt;
    if (plan_.so_far) plan_.so_far(measured_.capacity);
    say(fmt::format("closed loop: {} sections/s", human_number(result->sections_per_second)));
    return result->sections_per_second;
  }

  void search(double closed_loop_rate) {
    CapacitySearchPlan plan;
    plan.seconds = seconds(plan_.time);
    plan.planned = plan_.planned_rate;
    if (closed_loop_rate > 0) plan.first_rate = closed_loop_rate / 2;
    if (!stop_.stop_requested()) plan.guess = guess_capacity(plan_, closed_loop_rate);
    if (plan.guess) {
      say(fmt::format(
          "simulated: the objective is probably kept up to {}/s; what is measured decides",
          human_number(*plan.guess)));
    }
    if (lock_.excludes) {
      plan.ceiling = ceiling_of(plan_.run.workload);
      if (std::isfinite(plan.ceiling)) measured_.capacity.ceiling = plan.ceiling;
    }
    plan.bracket_seconds = std::min(kBracket, plan.seconds / 2);
    plan.bracketed = [this](double met, double not_met) { say_bracket(met, not_met); };
    search_began_ = Clock::now();
    const CapacityInterval found = search_capacity(
        plan, [this](double rate, Length length) { return try_rate(rate, length); },
        [this](double rate, Length length) { return step_seconds(plan_, rate, length); });
    measured_.capacity.lowest = found.kept;
    measured_.capacity.highest = found.missed;
    measured_.capacity.confirmed = found.confirmed;
  }

  /// What single steps show, and how long the decisions take.
  void say_bracket(double met, double not_met) {
    const double passed = seconds(Clock::now() - search_began_), whole = seconds(plan_.time);
    const double rate = met > 0 ? met : not_met;
    std::string text =
        fmt::format("after {}: the objective was met {}", human_seconds(passed),
                    met > 0 ? fmt::format("at {}/s", human_number(met)) : "at no rate so far");
    if (std::isfinite(not_met)) text += fmt::format(", and not at {}/s", human_number(not_met));
    if (std::isfinite(rate) && rate > 0) {
      text += fmt::format(", by single steps; to decide a rate takes about {}",
                          human_seconds(std::max(samples_needed(plan_.objective) / rate,
                                                 static_cast<double>(results::kFewestBatches) *
                                                     step_seconds(plan_, rate, Length::full))));
    }
    say(fmt::format("{}; the search goes on for up to {}", text,
                    human_seconds(std::max(0.0, whole - passed))));
  }

  std::optional<SearchStep> try_rate(double rate, Length length) {
    const auto began = Clock::now();
    auto result = run(step_of(plan_, rate, length));
    if (!result) return std::nullopt;
    results::Capacity& capacity = measured_.capacity;
    StepRuling step = judge_step(*result, plan_.objective);
    if (!step.valid) latest_disturbance_ = std::move(step.reason);
    auto& runs = rates_[rate];
    // The search goes on where the bracket was met, so those steps would flatter a decision.
    if (length == Length::full && only_brief_.erase(rate) > 0) runs.clear();
    if (length == Length::brief && runs.empty()) only_brief_.insert(rate);
    runs.push_back(std::move(*result));
    const RateRuling ruling = judge_rate(rate, runs, plan_.objective, lock_);
    const auto place =
        std::lower_bound(capacity.rates.begin(), capacity.rates.end(), rate,
                         [](const results::CapacityRate& one, double at) { return one.rate < at; });
    if (place != capacity.rates.end() && place->rate == rate) {
      *place = ruling.rate;
    } else {
      capacity.rates.insert(place, ruling.rate);
    }
    if (plan_.so_far) tell_so_far();
    const auto now = Clock::now();
    const std::string disturbed = ruling.rate.invalid_steps > 0
                                      ? fmt::format(", {} disturbed", ruling.rate.invalid_steps)
                                      : "";
    say(fmt::format("{:.0f} %: {}/s {}: {}; {} samples, missed in {} of {} steps{}",
                    100 * seconds(now - search_began_) / seconds(plan_.time), human_number(rate),
                    ruling.rate.decision, ruling.rate.reason,
                    human_count(static_cast<double>(ruling.rate.samples)), ruling.rate.missed_steps,
                    ruling.rate.steps, disturbed));
    return SearchStep{ruling.decision, seconds(now - began), ruling.enough, ruling.hindered,
                      step.met};
  }

  /// With the interval that the rates show already.
  void tell_so_far() const {
    results::Capacity capacity = measured_.capacity;
    for (const results::CapacityRate& one : capacity.rates) {
      if (one.decision == to_string(results::Decision::kept)) capacity.lowest = one.rate;
      if (one.decision != to_string(results::Decision::missed)) continue;
      capacity.highest = one.rate;
      break;
    }
    plan_.so_far(capacity);
  }

  /// The most telling run at that rate: a missed run if any, and a valid one if possible.
  const results::Run& worst_run(double rate) const {
    const auto shows = [this](const results::Run& run) {
      const StepRuling step = judge_step(run, plan_.objective);
      return std::pair(!step.met, step.valid);
    };
    const auto& runs = rates_.at(rate);
    return *std::max_element(
        runs.begin(), runs.end(),
        [&](const results::Run& a, const results::Run& b) { return shows(a) < shows(b); });
  }

  void name_what_limits() {
    results::Capacity& capacity = measured_.capacity;
    std::size_t steps = 0, invalid = 0;
    for (const results::CapacityRate& one : capacity.rates) {
      steps += one.steps;
      invalid += one.invalid_steps;
    }
    const bool missed = std::isfinite(capacity.highest);
    if (!missed && 2 * invalid <= steps) {
      capacity.limit_reason = "no rate was found at which the objective is missed";
      return;
    }
    const double rate = missed ? capacity.highest : rates_.rbegin()->first;
    const results::Run& run = worst_run(rate);
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const std::size_t servers = urls_of(*plan_.strategy, plan_.run.endpoints).size();
    const double store_cores = store_traits(plan_.strategy->backend).one_thread
                                   ? static_cast<double>(std::max<std::size_t>(servers, 1))
                                   : cores;
    LimitEvidence evidence{.run = run,
                           .clients = capacity.clients,
                           .lock = {lock_.busiest_key, run.audit.saw_no_violation()},
                           .store_cores = store_cores,
                           .cores = cores,
                           .step_valid = judge_step(run, plan_.objective).valid,
                           .steps = steps,
                           .invalid_steps = invalid,
                           .invalid_reason = latest_disturbance_};
    if (servers > 0) evidence.store = plan_.strategy->backend;
    Limit limit = name_limit(evidence);
    capacity.limit = std::move(limit.name);
    capacity.limit_reason = std::move(limit.reason);
  }

  const CapacityPlan& plan_;
  const OnStep& on_step_;
  const std::stop_token stop_;
  CapacityMeasured measured_;
  std::map<double, std::vector<results::Run>> rates_;
  std::set<double> only_brief_;  ///< rates with short steps alone
  LockShare lock_;
  std::string latest_disturbance_;  ///< of a step that was not valid
  Clock::time_point search_began_;
  std::uint64_t contended_grants_ = 0;
  int runs_ = 0;
};

}  // namespace

Duration default_search_time(const Workload& workload,
                             std::span<const results::Threshold> objective) {
  const double each = least_time(workload, objective);
  return std::clamp(of_seconds(std::min(kRates * each, seconds(kLongestSearch))), kShortestSearch,
                    kLongestSearch);
}

std::string search_too_short(const CapacityPlan& plan) {
  const double needed = samples_needed(plan.objective);
  const double each = least_time(plan.run.workload, plan.objective);
  if (each <= seconds(plan.time)) return "";
  return fmt::format(
      "{} cannot show that a rate is kept: {} sections at a rate, in {} steps of {} holds or more, "
      "take {}; the answer is then what single steps show; use a longer --time",
      human_seconds(seconds(plan.time)), human_count(needed), results::kFewestBatches,
      2 * kFewestHolds, human_seconds(each));
}

std::optional<std::uint64_t> keys_needed(const results::Capacity& capacity, const Workload& load) {
  const bool uniform = load.key_skew == 0 && !load.key_per_client;
  const bool too_high = capacity.planned_rate && *capacity.planned_rate > capacity.lowest;
  if (!too_high || !uniform || !(capacity.lowest > 0) || capacity.limit != "lock") {
    return std::nullopt;
  }
  const double each = capacity.lowest / static_cast<double>(capacity.keys);
  return static_cast<std::uint64_t>(std::ceil(*capacity.planned_rate / each));
}

std::optional<double> guess_capacity(const CapacityPlan& plan, double closed_loop_rate) {
  // So close that the rates around the guess enclose the answer. Each try halves what is left.
  constexpr double kClose = 1.03;
  constexpr int kMostTries = 10;
  if (!plan.simulate || !(closed_loop_rate > 0)) return std::nullopt;
  const auto closed_loop = plan.simulate(closed_loop_of(plan));
  if (!closed_loop || !(closed_loop->sections_per_second > 0)) return std::nullopt;
  double met = 0, missed = 2 * closed_loop->sections_per_second;
  for (int tries = 0; tries < kMostTries && missed > kClose * met; ++tries) {
    const double rate = met > 0 ? std::sqrt(met * missed) : missed / 2;
    Workload step = step_of(plan, rate, Length::full);
    step.duration = std::max(step.duration, of_seconds(samples_needed(plan.objective) / rate));
    const auto run = plan.simulate(step);
    (run && judge_step(*run, plan.objective).met ? met : missed) = rate;
  }
  if (!(met > 0)) return std::nullopt;
  return std::sqrt(met * missed) * closed_loop_rate / closed_loop->sections_per_second;
}

CapacityMeasured measure_capacity(const CapacityPlan& plan, const OnStep& on_step,
                                  const std::stop_token& stop) {
  return Experiment(plan, on_step, stop).measure();
}

}  // namespace lockbench::loadgen
