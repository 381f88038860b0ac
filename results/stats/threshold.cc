#include "results/stats/threshold.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "results/stats/figures.h"
#include "results/stats/statistics.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

struct Operator {
  std::string_view sign;
  Comparison comparison;
  bool (*holds)(double measured, double bound);
};
/// Operators of two characters come first, as "<=" begins with "<".
constexpr std::array<Operator, 6> kOperators{{
    {"<=", Comparison::less_equal, [](double a, double b) { return a <= b; }},
    {">=", Comparison::greater_equal, [](double a, double b) { return a >= b; }},
    {"==", Comparison::equal, [](double a, double b) { return a == b; }},
    {"!=", Comparison::not_equal, [](double a, double b) { return a != b; }},
    {"<", Comparison::less, [](double a, double b) { return a < b; }},
    {">", Comparison::greater, [](double a, double b) { return a > b; }},
}};

constexpr std::array<std::pair<std::string_view, double>, 7> kUnits{{
    {"", 1},
    {"ns", 1e-9},
    {"us", 1e-6},
    {"ms", 1e-3},
    {"s", 1},
    {"m", 60},
    {"h", 3600},
}};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

tl::expected<std::string, std::string> parse_figure(std::string_view text) {
  const std::vector<std::string> paths = each_of(figures(Run{}), &Figure::path);
  if (std::ranges::find(paths, text) != paths.end()) return std::string(text);
  return tl::unexpected(
      fmt::format("no such figure '{}'{}", text, did_you_mean(text, {paths.begin(), paths.end()})));
}

tl::expected<double, std::string> parse_bound(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) {
    return tl::unexpected(fmt::format("'{}' is not a number", text));
  }
  const auto unit_at = static_cast<std::size_t>(end - text.data());
  const std::string_view unit = trimmed(text.substr(unit_at));
  for (const auto& [name, seconds] : kUnits) {
    if (unit == name) return number * seconds;
  }
  return tl::unexpected(fmt::format("no such unit '{}': ns, us, ms, s, m, h or none", unit));
}

tl::expected<Threshold, std::string> threshold_of(std::string_view text) {
  const std::size_t at = text.find_first_of("<>=!");
  const std::string_view rest = text.substr(std::min(at, text.size()));
  const auto* const found =
      std::ranges::find_if(kOperators, [&](const auto& one) { return rest.starts_with(one.sign); });
  if (found == kOperators.end()) {
    return tl::unexpected(std::string("an operator is missing: one of < <= > >= == !="));
  }
  auto name = parse_figure(trimmed(text.substr(0, at)));
  if (!name) return tl::unexpected(std::move(name.error()));
  const auto bound = parse_bound(trimmed(rest.substr(found->sign.size())));
  if (!bound) return tl::unexpected(bound.error());
  return Threshold{std::string(text), std::move(*name), found->comparison, *bound};
}

/// Parses a text of bounded length; an error quotes it.
template <class Expression>
tl::expected<Expression, std::string> parsed(
    std::string_view what, std::string_view text,
    tl::expected<Expression, std::string> (&parse)(std::string_view)) {
  constexpr std::size_t kMaxLength = 200;
  if (text.size() > kMaxLength) {
    return tl::unexpected(fmt::format("{} longer than {} characters",
                                      what.empty() ? "expression" : "threshold", kMaxLength));
  }
  return parse(text).map_error([&](const std::string& error) {
    return printable(fmt::format("{}'{}': {}", what, text, error));
  });
}

/// Like a threshold, except for the sign and the percentage.
tl::expected<Regression, std::string> regression_of(std::string_view text) {
  const auto wrong_form = tl::unexpected(std::string(
      "expected FIGURE>+NUMBER or FIGURE<-NUMBER, with %, ns, us, ms, s, m, h or no unit"));
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos) return wrong_form;
  const bool more = text[at] == '>';
  std::string_view number = trimmed(text.substr(at + 1));
  if (!number.starts_with(more ? '+' : '-')) return wrong_form;
  number = trimmed(number.substr(1));
  const bool is_share = number.ends_with('%');
  if (is_share) number = trimmed(number.substr(0, number.size() - 1));
  const auto figure = parse_figure(trimmed(text.substr(0, at)));
  if (!figure) return tl::unexpected(figure.error());
  const auto bound = parse_bound(number);
  if (!bound) return tl::unexpected(bound.error());
  if (!(*bound >= 0)) return wrong_form;
  return Regression{std::string(text), *figure, more, is_share, is_share ? *bound / 100 : *bound};
}

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr Interval kAnywhere{-kInfinite, kInfinite};
/// So many samples must lie beyond a percentile.
constexpr double kBeyondPercentile = 10;
/// 95 % quantile of a normal distribution.
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

/// Samples of all batches by length, with those that were cut off counted separately.
struct Pool {
  struct Level {
    double complete = 0, cut = 0;  ///< `cut`: censored there
    std::vector<std::pair<std::size_t, double>> by_batch;
  };
  std::map<double, Level, std::greater<>> levels;  ///< the longest first
  std::vector<double> sizes, endless_by_batch;
  double samples = 0;
  double endless = 0;  ///< longer than every level
  double cut = 0;      ///< may be longer than every level

  Pool(std::span<const Run* const> runs, Distribution Run::*of) {
    for (const Run* run : runs) {
      const Distribution& batch = run->*of;
      const auto add = [&](const Distribution::Bucket& bucket, double Level::*kind) {
        Level& level = levels[bucket.upper];
        level.*kind += number(bucket.count);
        level.by_batch.emplace_back(sizes.size(), number(bucket.count));
      };
      for (const auto& bucket : batch.buckets) add(bucket, &Level::complete);
      for (const auto& bucket : batch.censored.buckets) add(bucket, &Level::cut);
      sizes.push_back(number(batch.count + batch.censored.count));
      endless_by_batch.push_back(number(batch.overflow + batch.censored.overflow));
      samples += sizes.back();
      endless += endless_by_batch.back();
      cut += number(batch.censored.count - batch.censored.overflow);
      // Never granted, so in no distribution. Failures are often not the lock's: a server is gone.
      if (of != &Run::acquire && of != &Run::acquire_service) continue;
      const double refused = number(run->outcomes.refused);
      const double failed = number(run->outcomes.failed + run->outcomes.unknown);
      samples += refused + failed;
      endless += refused;
      cut += failed;
    }
  }
};

/// Goes from the longest samples to the shortest. `beyond`: the number that it has passed.
struct Descent {
  const Pool& pool;
  double beyond = pool.endless, cut_beyond = 0;  ///< samples passed so far
  std::vector<double> beyond_by_batch = pool.endless_by_batch;

  void pass(const Pool::Level& level) {
    beyond += level.complete + level.cut;
    cut_beyond += level.cut;
    for (const auto& [batch, count] : level.by_batch) beyond_by_batch[batch] += count;
  }

  /// Variance of `beyond` between batches, as a multiple of its variance if samples were
  /// independent.
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

/// The dispersion at the first level with at least so many samples beyond it.
double dispersion_with(const Pool& pool, double beyond) {
  Descent descent{pool};
  for (const auto& [level, at] : pool.levels) {
    descent.pass(at);
    if (descent.beyond >= beyond) break;
  }
  return descent.dispersion();
}

/// Few batches estimate the variance badly, so Student's t widens the interval.
double overdispersion(double dispersion, double student_ratio) {
  return std::max(1.0, dispersion * student_ratio * student_ratio);
}

Ruling by_interval(const Threshold& objective, Interval figure) {
  Ruling ruling{.figure = figure};
  const bool below = objective.wants_less();
  const double kept_end = below ? figure.high : -figure.low;
  const double missed_end = below ? figure.low : -figure.high;
  const double bound = below ? objective.bound : -objective.bound;
  const bool may_equal = objective.comparison == Comparison::less_equal ||
                         objective.comparison == Comparison::greater_equal;
  if (kept_end < bound || (may_equal && kept_end == bound)) ruling.decision = Decision::kept;
  if (missed_end > bound || (!may_equal && missed_end == bound)) {
    ruling.decision = Decision::missed;
  }
  return ruling;
}

/// Where a percentile lies, with a confidence of 95 % on either side; infinite on a side that the
/// runs do not show. A share of 0.99 is p99.
///
/// Long waits come together, so the samples beyond a value count as clusters: a Poisson
/// distribution, overdispersed by as much as the runs differ, and the more, the fewer the runs.
/// Cut-off samples may have been longer than any value. Refused sections are beyond every value;
/// failed ones may be.
Interval percentile_interval(const Pool& pool, double share) {
  if (pool.sizes.size() < kFewestBatches) return kAnywhere;
  const double allowed = (1 - share) * pool.samples;
  const double student = student_quantile(0.95, number(pool.sizes.size()) - 1) / kQuantile95;
  // Few samples beyond a level estimate the variance badly, so those beyond the percentile set a
  // minimum.
  const double broad = dispersion_with(pool, allowed);
  const bool enough = allowed >= kBeyondPercentile * (1 - 1e-9);
  Interval interval = kAnywhere;
  // Waits in a queue grow one section at a time, so samples beyond twice the longest wait would be
  // independent.
  if (enough && !pool.levels.empty() && poisson_upper_bound(pool.endless + pool.cut) < allowed) {
    interval.high = 2 * pool.levels.begin()->first;
  }
  // Downwards, the number of samples beyond a level grows from surely too few to surely too many.
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
  bool may_be_larger = false;  // as waits were cut off
  for (const Run* run : runs) {
    const Figure found = find_figure(*run, figure);
    if (!found.value) return kAnywhere;
    values.push_back(*found.value);
    may_be_larger = may_be_larger || found.most > *found.value;
  }
  Interval interval = mean_interval(values).value_or(kAnywhere);
  if (may_be_larger) interval.high = kInfinite;
  return interval;
}

/// The refused acquisitions, for a figure of the waits: they have no wait, so they count as waits
/// without end. Not where a section takes several locks, as each refusal is followed by a retry.
std::uint64_t refused_of(const Run& run, std::string_view figure) {
  const auto of = distribution_of(figure);
  const bool waits = of == &Run::acquire || of == &Run::acquire_service;
  const bool nested = figure.find('.') != figure.rfind('.');
  return waits && !nested && !run.transactions ? run.outcomes.refused : 0;
}

/// The upper bound of that figure with `more` waits without end.
double most_with(std::uint64_t more, const Run& run, const std::string& figure) {
  const auto of = distribution_of(figure).value();
  Run with_more;
  with_more.*of = run.*of;
  (with_more.*of).censored.count += more;
  return find_figure(with_more, figure).most;
}

/// How a run could decide a threshold that waits which were cut off leave open.
std::string remedy_for(const Threshold& threshold, const Run& run) {
  std::string patience =
      fmt::format("a longer --acquire-timeout, above {}, would decide it",
                  human(threshold.bound, compared_figure(threshold.figure).unit));
  const auto percentile = percentile_of(threshold.figure);
  if (!percentile || !threshold.wants_less()) return run.outcomes.abandoned == 0 ? patience : "";
  const Distribution& waits = run.*percentile->of;
  const double cut = std::min(number(run.outcomes.abandoned), number(waits.censored.count));
  // These come again in a longer run; the end of the run cuts off no more than it did.
  double beyond = number(waits.censored.count) - cut + number(waits.overflow);
  for (const auto& [upper, count] : waits.buckets) {
    if (upper >= threshold.bound) beyond += number(count);
  }
  const double all = number(waits.count + waits.censored.count);
  const double allowed = (1 - percentile->share) - beyond / all;
  if (cut == 0 || allowed <= 0) return patience;
  const double needed = cut / allowed / all * run.duration_seconds;
  return fmt::format("a run of about {} would decide it", human_seconds(std::ceil(needed)));
}

}  // namespace

tl::expected<Threshold, std::string> parse_threshold(std::string_view text) {
  return parsed("threshold ", text, threshold_of);
}

tl::expected<Regression, std::string> parse_regression(std::string_view text) {
  return parsed("", text, regression_of);
}

ThresholdOutcome evaluate(const Threshold& threshold, const Run& run) {
  Figure figure = find_figure(run, threshold.figure);
  if (!figure.value) return {{}, fmt::format("{} was not measured", threshold.figure), true};
  const std::uint64_t refused = refused_of(run, threshold.figure);
  if (refused > 0) figure.most = most_with(refused, run, threshold.figure);
  const auto* const comparison =
      std::ranges::find(kOperators, threshold.comparison, &Operator::comparison);
  const bool low_fits = comparison->holds(*figure.value, threshold.bound);
  const bool high_fits = comparison->holds(figure.most, threshold.bound);
  // A value between the bounds may be the one that == or != asks for.
  const bool between = !threshold.wants_less() && !threshold.wants_more() &&
                       *figure.value < threshold.bound && threshold.bound < figure.most;
  if (low_fits && high_fits && !between) return {figure.value, ""};
  const Unit unit = compared_figure(threshold.figure).unit;
  const bool may_be_larger = figure.most > *figure.value;
  ThresholdOutcome outcome{
      figure.value,
      fmt::format("{} is {}{}", threshold.figure, may_be_larger ? "at least " : "",
                  human(*figure.value, unit)),
      low_fits != high_fits || between};
  if (may_be_larger && std::isfinite(figure.most)) {
    outcome.reason += " and at most " + human(figure.most, unit);
  }
  if (outcome.is_unknown && refused > 0) {
    outcome.reason += fmt::format("; {} acquisitions were refused", human_count(number(refused)));
  } else if (outcome.is_unknown) {
    outcome.remedy = remedy_for(threshold, run);
  }
  return outcome;
}

double samples_needed(std::string_view figure) {
  const auto percentile = percentile_of(figure);
  return percentile ? std::round(kBeyondPercentile / (1 - percentile->share)) : 0;
}

double samples_needed(std::span<const Threshold> objectives) {
  double most = 0;
  for (const Threshold& one : objectives) most = std::max(most, samples_needed(one.figure));
  return most;
}

std::string_view to_string(Decision decision) {
  constexpr std::array<std::string_view, 3> kNames{"open", "kept", "missed"};
  return kNames.at(static_cast<std::size_t>(decision));
}

Ruling judge(const Threshold& objective, std::span<const Run* const> runs) {
  const std::string& figure = objective.figure;
  if (const auto percentile = percentile_of(figure)) {
    const Pool pool(runs, percentile->of);
    Ruling ruling = by_interval(objective, percentile_interval(pool, percentile->share));
    ruling.samples = pool.samples;
    return ruling;
  }
  const bool of_each = figure.ends_with(".max") || figure.ends_with(".min") ||
                       figure.ends_with("longest_wait_seconds") ||
                       (!objective.wants_less() && !objective.wants_more());
  Ruling ruling =
      of_each ? by_each_run(objective, runs) : by_interval(objective, mean_of_runs(figure, runs));
  for (const Run* run : runs) ruling.samples += number(run->sections);
  return ruling;
}

}  // namespace lockbench::results
