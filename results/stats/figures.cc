#include "results/stats/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "results/file/fields.h"

namespace lockbench::results {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// The figure of this name if censored samples had never ended.
double upper_bound_of(const Distribution& distribution, std::string_view name, double value) {
  if (name == "count" || (name == "min" && distribution.count > 0)) return value;
  const auto share = percentile_share(fmt::format(".{}", name));
  if (!share) return kUnbounded;
  // A condensed file has no buckets. A percentile that it does not name is nearly exact.
  if (distribution.buckets.empty() && !distribution.is_at_least(name)) return value;
  const auto samples = static_cast<double>(distribution.count + distribution.censored.count);
  // Rounding: 0.07 * 100 is slightly above 7, but the rank is 7.
  const double rank = std::max(1.0, std::ceil(*share * samples - 1e-6));
  double below = 0;
  for (const Distribution::Bucket& bucket : distribution.buckets) {
    below += static_cast<double>(bucket.count);
    if (below < rank) continue;
    const bool holds_value = bucket.upper <= value * (1 + distribution.relative_error);
    return holds_value ? value : bucket.upper;
  }
  return kUnbounded;
}

class Collector {
 public:
  /// If `exists` is false, collects names only. `wanted`: the only path to collect; empty: all.
  Collector(std::string prefix, std::vector<Figure>& figures, std::string_view wanted,
            bool exists = true)
      : prefix_(std::move(prefix)), figures_(figures), wanted_(wanted), exists_(exists) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      add(name, static_cast<double>(value));
    } else if constexpr (requires(Collector inner) { describe(inner, value); }) {
      group(name, [&value](Collector& inner) {
        if constexpr (std::is_same_v<T, Distribution>) inner.distribution_ = &value;
        describe(inner, value);
      });
    }
  }

  /// `at_least` of a distribution: visited before the figures that it names,
  void operator()(const char* /*name*/, const std::vector<std::string>& at_least) {
    at_least_ = &at_least;
  }
  /// and "..._at_least": visited right after its figure.
  void operator()(const char* name, const bool& at_least) {
    if (added_ && std::string_view(name).ends_with("_at_least")) {
      figures_.back().at_least = at_least;
      if (at_least) figures_.back().most = kUnbounded;
    }
  }

  template <class T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (!leads_to_wanted(name)) return;
    Collector inner(prefix_, figures_, wanted_, exists_ && value.has_value());
    inner(name, value.value_or(T{}));
  }
  template <class T>
  void left_out(const char* name, const T& value) {
    (*this)(name, value);
  }

  void measured(const char* name, double value, bool exists) {
    add(name, exists ? std::optional(value) : std::nullopt);
  }

  template <class Fill>
  void group(const char* name, Fill fill) {
    if (!leads_to_wanted(name)) return;
    Collector inner(prefix_ + name + ".", figures_, wanted_, exists_);
    fill(inner);
  }

  void constant(const char* /*name*/, const char* /*text*/) {}

 private:
  /// Avoids visiting the whole run for each cell of a table.
  bool leads_to_wanted(const char* name) const {
    return wanted_.empty() || wanted_.starts_with(prefix_ + name);
  }

  void add(const char* name, std::optional<double> value) {
    added_ = wanted_.empty() || wanted_ == prefix_ + name;
    if (!added_) return;
    const bool exists = exists_ && value && std::isfinite(*value);
    const bool at_least =
        at_least_ != nullptr && std::ranges::find(*at_least_, name) != at_least_->end();
    figures_.push_back(
        {prefix_ + name, exists ? value : std::nullopt, at_least, exists ? *value : kUnbounded});
    // A figure that is not named may depend on what was cut off, too: a maximum that had ended.
    const bool cut = distribution_ != nullptr && distribution_->censored.count > 0;
    if (!exists || (!at_least && !cut)) return;
    figures_.back().most =
        distribution_ != nullptr ? upper_bound_of(*distribution_, name, *value) : kUnbounded;
  }

  std::string prefix_;
  std::vector<Figure>& figures_;
  const std::string_view wanted_;
  const bool exists_;
  bool added_ = false;  ///< whether the last figure was added
  const std::vector<std::string>* at_least_ = nullptr;
  const Distribution* distribution_ = nullptr;  ///< whose figures these are
};

/// The percentage after this one; 100 if a double cannot tell the two apart.
double next_step(double percent) {
  constexpr double kStepsPerHalving = 5;
  const double halvings = std::floor(std::log2(100 / (100 - percent))) + 1;
  const double next = percent + 100 / (kStepsPerHalving * std::exp2(halvings));
  return next > percent ? next : 100;
}

/// The figures that every comparison shows, and others with a known direction, except times.
struct Known {
  std::string_view path;
  Unit unit;
  Good good;
  bool is_usual = true;
};
constexpr std::array kKnown{
    Known{"sections_per_second", Unit::number, Good::higher},
    Known{"acquire.mean", Unit::seconds, Good::lower},
    Known{"acquire.p50", Unit::seconds, Good::lower},
    Known{"acquire.p99", Unit::seconds, Good::lower},
    Known{"handoff.p50", Unit::seconds, Good::lower},
    Known{"hold.p50", Unit::seconds, Good::lower},
    Known{"release.p50", Unit::seconds, Good::lower},
    Known{"commands_per_section", Unit::number, Good::lower},
    Known{"server_cpu_seconds_per_section", Unit::seconds, Good::lower},
    Known{"fairness.jain", Unit::number, Good::higher},
    Known{"outcomes.timed_out", Unit::count, Good::lower},
    Known{"outcomes.failed", Unit::count, Good::lower},
    Known{"leases_lost", Unit::count, Good::lower},
    Known{"audit.lost_updates", Unit::count, Good::lower},
    Known{"audit.overlaps", Unit::count, Good::lower},
    Known{"lock_taken", Unit::share, Good::unknown, false},
    Known{"sections", Unit::count, Good::higher, false},
    Known{"outcomes.acquired", Unit::count, Good::higher, false},
    Known{"fairness.longest_wait_seconds", Unit::seconds, Good::lower, false},
    Known{"transactions.aborts", Unit::count, Good::lower, false},
    Known{"transactions.retries", Unit::count, Good::lower, false},
    Known{"transactions.deadlocks", Unit::count, Good::lower, false},
    Known{"application.unprotected", Unit::count, Good::lower, false},
    Known{"application.pool_timeouts", Unit::count, Good::lower, false},
};

bool is_count(std::string_view path) {
  return path.starts_with("outcomes.") || path.starts_with("releases.") ||
         (path.starts_with("audit.") && !path.ends_with("_seconds")) ||
         std::ranges::any_of(kRunCounts, [&](const auto& count) { return path == count.name; });
}

/// Whether the figure is a time of a distribution.
bool is_time(std::string_view path) {
  constexpr std::array<std::string_view, 9> kTimes{"mean", "stddev", "min",  "p50", "p90",
                                                   "p95",  "p99",    "p999", "max"};
  const std::string_view last = path.substr(path.rfind('.') + 1);
  return !path.starts_with("costs.") && !path.starts_with("fairness.") &&
         std::ranges::find(kTimes, last) != kTimes.end();
}

}  // namespace

std::vector<Figure> figures(const Run& run) {
  std::vector<Figure> found;
  Collector collector("", found, "");
  describe(collector, run);
  return found;
}

Figure find_figure(const Run& run, std::string_view path) {
  std::vector<Figure> found;
  Collector collector("", found, path);
  describe(collector, run);
  if (found.size() != 1) throw std::invalid_argument("no such figure: " + std::string(path));
  return std::move(found.front());
}

std::optional<double> figure(const Run& run, std::string_view path) {
  return find_figure(run, path).value;
}

std::optional<Distribution Run::*> distribution_of(std::string_view path) {
  const std::string_view group = path.substr(0, path.find('.'));
  for (const auto& field : kRunDistributions) {
    if (group == field.name) return field.member;
  }
  return std::nullopt;
}

std::optional<double> percentile_share(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, double>, 5> kShares{
      {{".p50", 0.5}, {".p90", 0.9}, {".p95", 0.95}, {".p99", 0.99}, {".p999", 0.999}}};
  for (const auto& [end, share] : kShares) {
    if (path.ends_with(end)) return share;
  }
  return std::nullopt;
}

std::vector<PercentileStep> percentile_steps(const Distribution& distribution) {
  std::map<double, std::uint64_t> buckets;  // of the complete and the censored samples together
  std::uint64_t total = distribution.overflow + distribution.censored.overflow;
  for (const auto* some : {&distribution.buckets, &distribution.censored.buckets}) {
    for (const auto& [upper, count] : *some) {
      buckets[upper] += count;
      total += count;
    }
  }
  std::vector<PercentileStep> steps;
  double percent = 0;
  std::uint64_t below = 0;
  for (const auto& [upper, count] : buckets) {
    below += count;
    const double reached = 100 * static_cast<double>(below) / static_cast<double>(total);
    // One bucket may pass several steps.
    for (; below < total && percent < 100 && percent <= reached; percent = next_step(percent)) {
      // The largest sample is known exactly.
      steps.push_back({percent, std::min(upper, distribution.max), below});
    }
  }
  if (total > 0 && percent < 100) steps.push_back({percent, distribution.max, total});
  return steps;
}

ComparedFigure compared_figure(const std::string& path) {
  const auto* const known = std::ranges::find(kKnown, path, &Known::path);
  if (known != kKnown.end()) return {path, known->unit, known->good};
  if (is_time(path)) {
    const bool left = path.starts_with("renewal.margin.") || path.starts_with("quorum.validity.");
    return {path, Unit::seconds, left ? Good::higher : Good::lower};
  }
  if (path.ends_with("_seconds")) return {path, Unit::seconds, Good::unknown};
  return {path, is_count(path) ? Unit::count : Unit::number, Good::unknown};
}

std::vector<ComparedFigure> compared_figures(std::span<const std::string> more) {
  std::vector<ComparedFigure> figures;
  for (const Known& one : kKnown) {
    if (one.is_usual) figures.push_back({std::string(one.path), one.unit, one.good});
  }
  for (const std::string& path : more) {
    const bool there =
        std::ranges::any_of(figures, [&](const ComparedFigure& one) { return one.path == path; });
    if (!there) figures.push_back(compared_figure(path));
  }
  return figures;
}

}  // namespace lockbench::results
