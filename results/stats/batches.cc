#include "results/stats/batches.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/stats/figures.h"
#include "results/stats/statistics.h"

namespace lockbench::results {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr Interval kAnywhere{-kInfinite, kInfinite};
constexpr double kBeyondPercentile = 10;
/// Of a normal distribution.
constexpr double kQuantile95 = 1.6448536269514722;

/// A percentile of one of a run's distributions.
struct Percentile {
  Distribution Run::*of = nullptr;
  double share = 0;
};

std::optional<Percentile> percentile_of(std::string_view figure) {
  const auto member = distribution_of(figure);
  const auto share = percentile_share(figure);
  if (!member || !share) return std::nullopt;
  return Percentile{*member, *share};
}

double number(std::uint64_t count) { return static_cast<double>(count); }

/// Samples of all batches by length, those that were cut off apart.
struct Pool {
  struct Level {
    double complete = 0, cut = 0;
    std::vector<std::pair<std::size_t, double>> by_batch;
  };
  std::map<double, Level, std::greater<>> levels;
  std::vector<double> sizes, endless_by_batch;
  double samples = 0;
  double endless = 0;  ///< longer than every level
  double cut = 0;

  Pool(std::span<const Distribution* const> batches, double refused, double failed)
      : samples(refused + failed), endless(refused), cut(failed) {
    for (const Distribution* batch : batches) {
      const auto add = [&](const Distribution::Bucket& bucket, double Level::*kind) {
        Level& level = levels[bucket.upper];
        level.*kind += number(bucket.count);
        level.by_batch.emplace_back(sizes.size(), number(bucket.count));
      };
      for (const auto& bucket : batch->buckets) add(bucket, &Level::complete);
      for (const auto& bucket : batch->censored.buckets) add(bucket, &Level::cut);
      sizes.push_back(number(batch->count + batch->censored.count));
      endless_by_batch.push_back(number(batch->overflow + batch->censored.overflow));
      samples += sizes.back();
      endless += endless_by_batch.back();
      cut += number(batch->censored.count - batch->censored.overflow);
    }
  }
};

/// Goes from the longest samples to the shortest. `beyond`: those that it has passed.
struct Descent {
  const Pool& pool;
  double beyond = pool.endless, cut_beyond = 0;
  std::vector<double> beyond_by_batch = pool.endless_by_batch;

  void pass(const Pool::Level& level) {
    beyond += level.complete + level.cut;
    cut_beyond += level.cut;
    for (const auto& [batch, count] : level.by_batch) beyond_by_batch[batch] += count;
  }

  /// By how much `beyond` varies more than if samples fell independently: the variance between
  /// batches, in multiples of what it then would be.
  double dispersion() const {
    const double all = std::accumulate(pool.sizes.begin(), pool.sizes.end(), 0.0);
    const double far = std::accumulate(beyond_by_batch.begin(), beyond_by_batch.end(), 0.0);
    if (!(far > 0)) return 1;
    double squares = 0;
    for (std::size_t i = 0; i < pool.sizes.size(); ++i) {
      const double expected = pool.sizes[i] * far / all;
      if (expected > 0) squares += std::pow(beyond_by_batch[i] - expected, 2) / expected;
    }
    return squares / (number(pool.sizes.size()) - 1);
  }
};

/// The dispersion from the level on from which on there are so many samples.
double dispersion_with(const Pool& pool, double beyond) {
  Descent descent{pool};
  for (const auto& [level, at] : pool.levels) {
    descent.pass(at);
    if (descent.beyond >= beyond) break;
  }
  return descent.dispersion();
}

/// Few batches show their variance badly: the wider the interval is, by Student.
double overdispersion(double dispersion, double student_ratio) {
  return std::max(1.0, dispersion * student_ratio * student_ratio);
}

Ruling by_interval(const Threshold& objective, Interval figure) {
  Ruling ruling{.figure = figure};
  const bool below = objective.wants_less();
  const double kept_end = below ? figure.high : -figure.low;
  const double missed_end = below ? figure.low : -figure.high;
  const double bound = below ? objective.bound : -objective.bound;
  if (kept_end < bound) ruling.decision = Decision::kept;
  if (missed_end >= bound) ruling.decision = Decision::missed;
  return ruling;
}

Ruling by_each_run(const Threshold& objective, std::span<const Run* const> runs) {
  if (runs.size() < kFewestBatches) return {.figure = kAnywhere};
  Ruling ruling{.decision = Decision::kept, .figure = {kInfinite, -kInfinite}};
  for (const Run* run : runs) {
    const ThresholdOutcome outcome = evaluate(objective, *run);
    if (outcome.measured) {
      ruling.figure.low = std::min(ruling.figure.low, *outcome.measured);
      ruling.figure.high = std::max(ruling.figure.high, *outcome.measured);
    }
    if (outcome.kept()) continue;
    if (!outcome.is_unknown) {
      ruling.decision = Decision::missed;
    } else if (ruling.decision == Decision::kept) {
      ruling.decision = Decision::open;
    }
  }
  return ruling;
}

Interval mean_of_runs(const std::string& figure, std::span<const Run* const> runs) {
  if (runs.size() < kFewestBatches) return kAnywhere;
  std::vector<double> values;
  bool at_least = false;
  for (const Run* run : runs) {
    const Figure found = find_figure(*run, figure);
    if (!found.value) return kAnywhere;
    values.push_back(*found.value);
    at_least = at_least || found.at_least;
  }
  Interval interval = mean_interval(values).value_or(kAnywhere);
  if (at_least) interval.high = kInfinite;
  return interval;
}

}  // namespace

double samples_needed(std::string_view figure) {
  const auto percentile = percentile_of(figure);
  return percentile ? std::round(kBeyondPercentile / (1 - percentile->share)) : 0;
}

double samples_needed(std::span<const Threshold> objectives) {
  double most = 0;
  for (const Threshold& one : objectives) most = std::max(most, samples_needed(one.figure));
  return most;
}

Interval percentile_interval(std::span<const Distribution* const> batches, double share,
                             double refused, double failed) {
  if (batches.size() < kFewestBatches) return kAnywhere;
  const Pool pool(batches, refused, failed);
  const double allowed = (1 - share) * pool.samples;
  const double student = student_quantile(0.95, number(batches.size()) - 1) / kQuantile95;
  // Few samples beyond a level tell the variance badly, so those beyond the percentile have a say.
  const double broad = dispersion_with(pool, allowed);
  const bool enough = allowed >= kBeyondPercentile * (1 - 1e-9);
  Interval interval = kAnywhere;
  // Waits in a queue grow one section at a time: of twice the longest, samples are independent.
  if (enough && !pool.levels.empty() && poisson_upper_bound(pool.endless + pool.cut) < allowed) {
    interval.high = 2 * pool.levels.begin()->first;
  }
  // Going down, the samples beyond a level grow from surely too few to surely too many.
  Descent descent{pool};
  for (const auto& [level, at] : pool.levels) {
    const double perhaps = descent.beyond + (pool.cut - descent.cut_beyond);
    double varies = overdispersion(std::max(broad, descent.dispersion()), student);
    if (enough && varies * poisson_upper_bound(perhaps / varies) < allowed) interval.high = level;
    descent.pass(at);
    varies = overdispersion(std::max(broad, descent.dispersion()), student);
    const double from_here = descent.beyond;
    if (from_here >= kBeyondPercentile &&
        varies * poisson_lower_bound(from_here / varies) > allowed) {
      interval.low = level;
      break;
    }
  }
  return interval;
}

std::string_view to_string(Decision decision) {
  constexpr std::array<std::string_view, 3> kNames{"open", "kept", "missed"};
  return kNames.at(static_cast<std::size_t>(decision));
}

Ruling judge(const Threshold& objective, std::span<const Run* const> runs) {
  const std::string& figure = objective.figure;
  Ruling ruling;
  double samples = 0;
  if (const auto percentile = percentile_of(figure)) {
    std::vector<const Distribution*> batches;
    double refused = 0, failed = 0;
    const bool of_acquire =
        percentile->of == &Run::acquire || percentile->of == &Run::acquire_service;
    for (const Run* run : runs) {
      batches.push_back(&(run->*percentile->of));
      samples += number(batches.back()->count + batches.back()->censored.count);
      // Never granted, and in no distribution. Failures are often not the lock's: a server is gone.
      if (!of_acquire) continue;
      refused += number(run->outcomes.refused);
      failed += number(run->outcomes.failed + run->outcomes.unknown);
    }
    ruling =
        by_interval(objective, percentile_interval(batches, percentile->share, refused, failed));
    samples += refused + failed;
  } else {
    const bool of_each = figure.ends_with(".max") || figure.ends_with(".min") ||
                         figure.ends_with("longest_wait_seconds") ||
                         (!objective.wants_less() && !objective.wants_more());
    ruling =
        of_each ? by_each_run(objective, runs) : by_interval(objective, mean_of_runs(figure, runs));
    for (const Run* run : runs) samples += number(run->sections);
  }
  ruling.samples = samples;
  return ruling;
}

}  // namespace lockbench::results
