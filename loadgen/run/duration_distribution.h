#pragma once

#include <cmath>
#include <istream>
#include <numbers>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/duration.h"
#include "strategies/random.h"

namespace lockbench::loadgen {

// Own code, as the standard library's distributions differ between implementations, and a seed must
// give the same load everywhere.

/// Uniform in [0, 1).
inline double draw_unit(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// Exponential with mean 1; below 37, the limit of 53 random bits.
inline double draw_exponential(Random& random) { return -std::log1p(-draw_unit(random)); }

/// Normal with mean 0 and variance 1 (Box and Muller, A note on the generation of random normal
/// deviates, 1958).
inline double draw_normal(Random& random) {
  const double radius = std::sqrt(2 * draw_exponential(random));
  return radius * std::cos(2 * std::numbers::pi * draw_unit(random));
}

/// Distribution of a duration: constant, exponential, uniform, lognormal or measured. By default
/// always zero.
class DurationDistribution {
 public:
  /// The longest draw; exponential and lognormal draws are limited to it.
  static constexpr Duration kLongestDraw = std::chrono::hours(1);

  DurationDistribution() = default;

  /// Throw std::invalid_argument for negative durations, one above kLongestDraw, `from` above `to`,
  /// or a median that is 0 or above the `p99`.
  static DurationDistribution constant(Duration value) { return {Kind::constant, value, value}; }
  static DurationDistribution exponential(Duration mean) { return {Kind::exponential, mean, mean}; }
  static DurationDistribution uniform(Duration from, Duration to) {
    return {Kind::uniform, from, to};
  }
  static DurationDistribution lognormal(Duration median, Duration p99) {
    return {Kind::lognormal, median, p99};
  }

  /// A share of all draws, from 0 to 1, is at most this long.
  struct Quantile {
    double share = 0;
    Duration value{};
    bool operator==(const Quantile&) const = default;
  };
  /// Reads "2ms", "exp(2ms)", "uniform(1ms,3ms)" or "lognormal(2ms,20ms)", with spaces around each
  /// part allowed, or "quantiles:FILE", which read_quantiles() reads.
  static tl::expected<DurationDistribution, std::string> parse(std::string_view text);
  /// A line for each quantile, such as "0.99 12ms"; both columns grow. Draws are uniform between
  /// two quantiles, and equal to the nearest outside. The error names the line.
  static tl::expected<DurationDistribution, std::string> read_quantiles(std::istream& file,
                                                                        std::string path);

  Duration draw(Random& random) const;
  Duration mean() const;
  bool is_zero() const { return low_ == Duration::zero() && high_ == Duration::zero(); }

  /// In the form that parse() reads.
  std::string to_string() const;

  bool operator==(const DurationDistribution&) const = default;

  /// Calls `visit` with all members, to send it to another process.
  template <class Visit>
  void parts(Visit&& visit) {
    visit(kind_, low_, high_, quantiles_, path_);
  }

 private:
  enum class Kind { constant, exponential, uniform, lognormal, quantiles };

  DurationDistribution(Kind kind, Duration low, Duration high);
  /// Standard deviation of a lognormal distribution's logarithm.
  double sigma() const;

  Kind kind_ = Kind::constant;
  Duration low_{}, high_{};  ///< equal (the value or mean), except for uniform and lognormal
  std::vector<Quantile> quantiles_;
  std::string path_;  ///< of their file
};

}  // namespace lockbench::loadgen
