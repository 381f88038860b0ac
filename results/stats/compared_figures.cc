#include "results/stats/compared_figures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "results/stats/figures.h"
#include "results/stats/statistics.h"
#include "results/stats/time_series.h"

namespace lockbench::results {
namespace {

struct Usual {
  std::string_view path;
  Unit unit;
  Good good;
};

constexpr std::array kUsual{
    Usual{"sections_per_second", Unit::number, Good::higher},
    Usual{"acquire.mean", Unit::seconds, Good::lower},
    Usual{"acquire.p50", Unit::seconds, Good::lower},
    Usual{"acquire.p99", Unit::seconds, Good::lower},
    Usual{"handoff.p50", Unit::seconds, Good::lower},
    Usual{"hold.p50", Unit::seconds, Good::lower},
    Usual{"release.p50", Unit::seconds, Good::lower},
    Usual{"commands_per_section", Unit::number, Good::lower},
    Usual{"server_cpu_seconds_per_section", Unit::seconds, Good::lower},
    Usual{"fairness.jain", Unit::number, Good::higher},
    Usual{"outcomes.timed_out", Unit::count, Good::lower},
    Usual{"outcomes.failed", Unit::count, Good::lower},
    Usual{"leases_lost", Unit::count, Good::lower},
    Usual{"audit.lost_updates", Unit::count, Good::lower},
    Usual{"audit.overlaps", Unit::count, Good::lower},
};

/// Compared only if requested. A path that ends in a dot stands for a distribution.
constexpr std::array kMore{
    Usual{"sections", Unit::count, Good::higher},
    Usual{"outcomes.acquired", Unit::count, Good::higher},
    Usual{"fairness.longest_wait_seconds", Unit::seconds, Good::lower},
    Usual{"renewal.margin.", Unit::seconds, Good::higher},
    Usual{"renewal.duration.", Unit::seconds, Good::lower},
    Usual{"renewal.slip.", Unit::seconds, Good::lower},
    Usual{"quorum.validity.", Unit::seconds, Good::higher},
    Usual{"replication.wait.", Unit::seconds, Good::lower},
    Usual{"acquire_by_mode.exclusive.", Unit::seconds, Good::lower},
    Usual{"acquire_by_mode.shared.", Unit::seconds, Good::lower},
    Usual{"transactions.acquire.", Unit::seconds, Good::lower},
    Usual{"transactions.acquire_service.", Unit::seconds, Good::lower},
    Usual{"transactions.aborts", Unit::count, Good::lower},
    Usual{"transactions.retries", Unit::count, Good::lower},
    Usual{"transactions.deadlocks", Unit::count, Good::lower},
};

bool is_count(std::string_view path) {
  return path.starts_with("outcomes.") || path.starts_with("releases.") || path == "sections" ||
         (path.starts_with("audit.") && !path.ends_with("_seconds")) ||
         std::any_of(kRunCounts.begin(), kRunCounts.end(),
                     [&](const auto& count) { return path == count.name; });
}

/// Whether a figure of a distribution is a time: not its count, nor a figure of its histogram.
bool is_time(std::string_view path) {
  return !path.ends_with(".count") && path.find(".histogram.") == std::string_view::npos;
}

bool stands_for(const Usual& one, std::string_view path) {
  return one.path == path ||
         (one.path.ends_with('.') && path.starts_with(one.path) && is_time(path));
}

/// The series without the warm-up; a last point of less than half a second is too noisy.
std::vector<double> measured(const Run& run, double (*of)(const SeriesPoint&, double seconds)) {
  constexpr double kShortest = 0.5;
  std::vector<double> values;
  double before = 0;
  for (const SeriesPoint& point : run.series) {
    const double seconds = point.t - before;
    before = point.t;
    if (point.warmup || !(seconds >= kShortest)) continue;
    const double value = of(point, seconds);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

double rate(const SeriesPoint& point, double seconds) {
  return static_cast<double>(point.sections) / seconds;
}

/// How many correlated samples are worth one independent sample: the variance of the counts per
/// second relative to a Poisson process, times their correlation length. Empty if there are too few
/// seconds.
std::optional<double> clumping(const std::vector<double>& rates) {
  const auto center = mean(rates);
  const auto spread = stddev(rates);
  if (rates.size() < 3 || !spread || !(*center > 0)) return std::nullopt;
  const double memory = static_cast<double>(rates.size()) / effective_size(rates);
  return std::max(1.0, *spread * *spread / *center * memory);
}

/// The value below which a share of the samples lies.
double at_rank(const Distribution& distribution, double share) {
  const double wanted =
      share * static_cast<double>(distribution.count + distribution.censored.count);
  double below = 0;
  for (const Distribution::Bucket& bucket : all_buckets(distribution)) {
    below += static_cast<double>(bucket.count);
    if (below >= wanted) return bucket.upper;
  }
  return distribution.max;
}

/// A percentile's rank has a binomial distribution: the values at one standard deviation below and
/// above it give the error, like a bootstrap of the samples. `samples` must allow for clumping, as
/// a histogram keeps no order.
double error_from_histogram(const Distribution& distribution, std::string_view path,
                            double samples) {
  if (distribution.count == 0 || !(samples >= 1)) return 0;
  const auto share = percentile_share(path);
  if (!share) {
    if (!path.ends_with(".mean") || !(distribution.mean > 0)) return 0;
    return distribution.stddev / distribution.mean / std::sqrt(samples);
  }
  const double off = std::sqrt(*share * (1 - *share) / samples);
  const double low = at_rank(distribution, std::max(0.0, *share - off));
  const double high = at_rank(distribution, std::min(1.0, *share + off));
  return low > 0 && high > low ? std::log(high / low) / 2 : 0;
}

std::vector<double> series_of(const Run& run, std::string_view path) {
  if (path == "sections_per_second") return measured(run, rate);
  if (path == "acquire.p50") {
    return measured(run, [](const SeriesPoint& point, double) { return point.acquire_p50; });
  }
  if (path == "acquire.p99") {
    return measured(run, [](const SeriesPoint& point, double) { return point.acquire_p99; });
  }
  return {};
}

}  // namespace

ComparedFigure compared_figure(const std::string& path) {
  const auto* const usual = std::find_if(kUsual.begin(), kUsual.end(),
                                         [&](const Usual& one) { return one.path == path; });
  if (usual != kUsual.end()) return {path, usual->unit, usual->good};
  const auto* const more = std::find_if(kMore.begin(), kMore.end(),
                                        [&](const Usual& one) { return stands_for(one, path); });
  if (more != kMore.end()) return {path, more->unit, more->good};
  const bool is_latency = distribution_of(path) && is_time(path);
  if (is_latency || path.ends_with("_seconds")) {
    return {path, Unit::seconds, is_latency ? Good::lower : Good::unknown};
  }
  return {path, is_count(path) ? Unit::count : Unit::number, Good::unknown};
}

bool changed_since_version_1(std::string_view path) {
  return path.starts_with("acquire.") || path.starts_with("acquire_service.") ||
         path.starts_with("handoff.") || path == "fairness.longest_wait_seconds";
}

std::vector<ComparedFigure> compared_figures(std::span<const std::string> more) {
  std::vector<ComparedFigure> figures;
  figures.reserve(kUsual.size() + more.size());
  for (const Usual& usual : kUsual) {
    figures.push_back({std::string(usual.path), usual.unit, usual.good});
  }
  for (const std::string& path : more) {
    const bool known = std::any_of(figures.begin(), figures.end(),
                                   [&](const ComparedFigure& one) { return one.path == path; });
    if (!known) figures.push_back(compared_figure(path));
  }
  return figures;
}

WithinRun within_run(const Run& run, const ComparedFigure& figure, double value) {
  constexpr std::uint64_t kSeed = 1;
  constexpr double kClumpedSamples = 30;  ///< assumed for a run without a series
  if (figure.unit == Unit::count) return {std::sqrt(std::max(value, 1.0)), 2};
  const std::vector<double> rates = measured(run, rate);
  const std::vector<double> series = series_of(run, figure.path);
  const auto center = mean(series);
  if (const auto error = block_bootstrap_error(series, kSeed); error && *center > 0) {
    return {*error / *center, effective_size(series)};
  }
  WithinRun within{0, std::max(1.0, effective_size(rates))};
  if (const auto member = distribution_of(figure.path)) {
    const Distribution& distribution = run.**member;
    const auto count = static_cast<double>(distribution.count);
    const auto clump = clumping(rates);
    within.error = error_from_histogram(
        distribution, figure.path,
        clump ? std::max(1.0, count / *clump) : std::min(count, kClumpedSamples));
  }
  return within;
}

}  // namespace lockbench::results
