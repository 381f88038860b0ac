#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "loadgen/run/runner.h"
#include "results/stats/threshold.h"

namespace lockbench::loadgen {

/// The ruling on a step, which is one run of an open loop.
struct StepRuling {
  bool met = false;    ///< this step alone kept the objective and served the offered load
  bool valid = false;  ///< false: the generator limited the load
  std::string reason;  ///< why it was not met or not valid; else empty
};
StepRuling judge_step(const results::Run& run, std::span<const results::Threshold> objective);

/// The ruling on all runs at one rate. They must keep the objective, serve the load, and leave the
/// lock free at times. Runs disturbed by the generator or the machine can only show that the
/// objective is kept, as disturbance prolongs waits.
struct RateRuling {
  results::Decision decision = results::Decision::open;
  bool enough = false;    ///< runs and samples for a decision
  bool hindered = false;  ///< open, but missed if disturbed runs counted
  results::CapacityRate rate;
};
RateRuling judge_rate(double rate, std::span<const results::Run> runs,
                      std::span<const results::Threshold> objective, const LockShare& lock);

/// Figures of a run at the lowest rate that missed the objective.
struct LimitEvidence {
  const results::Run& run;
  std::uint64_t clients = 1;
  LockShare lock{};
  std::string_view store = "the store";  ///< "redis"
  double store_cores = 1;                ///< that the store can use: 1 if one thread serves all
  int cores = 1;                         ///< of this machine
  bool step_valid = true;
  /// Of the whole search: with half of the steps invalid, none of its figures can be trusted.
  std::size_t steps = 0, invalid_steps = 0;
  std::string invalid_reason{};  ///< of the last such step
};

struct Limit {
  std::string name;    ///< "lock", "store", "generator", "clients" or "unknown"
  std::string reason;  ///< with the figures that show it, in one line
};

Limit name_limit(const LimitEvidence& evidence);

/// Plays a load on simulated machines; nothing if that shows nothing.
using Simulate = std::function<std::optional<results::Run>(const Workload& workload)>;

/// How to measure the highest load at which one strategy keeps an objective.
struct CapacityPlan {
  /// Of each step; the search sets the strategy and the rate, and lengthens steps if the hold is
  /// long.
  RunPlan run;
  const Descriptor* strategy = nullptr;
  Duration time{};  ///< of the search
  std::vector<results::Threshold> objective;
  std::optional<double> planned_rate;
  Simulate simulate{};  ///< the strategy, to guess where the answer lies; may be empty
  /// Called after each run with the result so far; may be empty.
  std::function<void(const results::Capacity&)> so_far{};
};

/// The default time of a search: enough for the objective's samples at eight rates near the
/// capacity, but 5 to 30 minutes.
Duration default_search_time(const Workload& workload,
                             std::span<const results::Threshold> objective);
/// Why the search's time is too short to decide even one rate with this hold, and what its answer
/// is then; empty if it is not.
std::string search_too_short(const CapacityPlan& plan);

/// A stop ends the search early; these are then the results so far.
struct CapacityMeasured {
  results::Capacity capacity;
  std::vector<std::string> errors;  ///< runs that did not start, and failures within runs
};
/// How many keys the planned rate needs if each carries what it kept here; nothing if it is kept,
/// if the lock is not the limit, or if some keys are wanted more than others.
std::optional<std::uint64_t> keys_needed(const results::Capacity& capacity, const Workload& load);

/// The rate that is probably the highest to keep the objective, by simulations of single steps. The
/// simulated machines are taken to be as much faster than the real ones as they are in a closed
/// loop, whose rate was measured here. Nothing without simulations, or if they meet the objective
/// at no rate.
std::optional<double> guess_capacity(const CapacityPlan& plan, double closed_loop_rate);

CapacityMeasured measure_capacity(const CapacityPlan& plan, const OnStep& on_step,
                                  const std::stop_token& stop);

/// Bounds of the search for the highest rate that keeps an objective. Rates in sections per second.
struct CapacitySearchPlan {
  double first_rate = 100;  ///< above 0; less time is needed if it is near the answer
  /// What is probably the answer. Rates around it are tried first, and if it lies beyond them, what
  /// would have been tried without them. It decides nothing.
  std::optional<double> guess{};
  double ceiling = std::numeric_limits<double>::infinity();  ///< only lower rates are tried
  std::optional<double> planned;  ///< tried first, or where the rates so far leave it open
  double precision = 0.1;         ///< relative width at which the interval is narrow enough
  double seconds = 300;           ///< no step begins that would end later
  /// So long, single short steps look for the rates between which the answer probably lies; 0: not.
  double bracket_seconds = 0;
  /// Called when that is over, with the highest rate that was met (0: none) and the lowest that was
  /// not (infinite: none); may be empty.
  std::function<void(double met, double not_met)> bracketed{};
};

/// The result of the tried rates: the capacity lies in between.
struct CapacityInterval {
  double kept = 0;  ///< the highest kept rate below all missed ones; 0 if there is none
  double missed = std::numeric_limits<double>::quiet_NaN();  ///< the lowest missed rate, if any
  bool confirmed = false;  ///< narrow enough, and measured again at both ends
};

struct SearchStep {
  results::Decision decision = results::Decision::open;  ///< of all steps at this rate
  double seconds = 0;                                    ///< of this step
  bool enough = true;     ///< all steps at this rate could have decided it
  bool hindered = false;  ///< they would have, but some were disturbed: try another rate first
  bool met = true;        ///< this step kept the objective, which decides nothing
};
/// How many sections a step has: as many as an objective needs, or as few as show waits at all.
enum class StepLength { full, brief };
/// Makes a step at that rate; a result of nothing ends the search.
using MakeStep = std::function<std::optional<SearchStep>(double rate, StepLength length)>;
/// How long a step at that rate will take.
using EstimateStep = std::function<double(double rate, StepLength length)>;

/// First brackets the answer by short steps, for a few seconds. Then it decides the planned rate,
/// or else the highest that was met, and tries rates between the highest that is kept and the
/// lowest that is missed. It leaves a rate that stays open for too long, and looks for a kept rate
/// below it and a missed one above it. Once the missed rate is at most twice the kept one, it first
/// measures the kept one for a sixth of the time. In the end it measures both again, as often as it
/// took to decide them, or in the last fifth of the time. Where the time left is too short for a
/// step, short ones narrow the bracket. All steps at a rate decide together, so a miss counts
/// whenever it happens.
CapacityInterval search_capacity(CapacitySearchPlan plan, const MakeStep& make,
                                 const EstimateStep& estimate);

}  // namespace lockbench::loadgen
