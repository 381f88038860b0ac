#pragma once

#include <random>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/duration.h"

namespace lockbench::loadgen {

/// Distribution of a duration: constant, exponential or uniform. By default always zero.
class DurationDistribution {
 public:
  /// The longest draw; exponential ones are cut there.
  static constexpr Duration kLongestDraw = std::chrono::hours(1);

  DurationDistribution() = default;

  /// Throw std::invalid_argument for negative durations, a mean above kLongestDraw, or `from` above
  /// `to`.
  static DurationDistribution constant(Duration value);
  static DurationDistribution exponential(Duration mean);
  static DurationDistribution uniform(Duration from, Duration to);

  /// Reads "2ms", "exp(2ms)" or "uniform(1ms,3ms)", with spaces around each part allowed.
  static tl::expected<DurationDistribution, std::string> parse(std::string_view text);

  Duration draw(std::mt19937_64& random) const;
  Duration mean() const;
  bool is_zero() const { return low_ == Duration::zero() && high_ == Duration::zero(); }

  /// In the form that parse() reads.
  std::string to_string() const;

  bool operator==(const DurationDistribution&) const = default;

 private:
  enum class Kind { constant, exponential, uniform };

  DurationDistribution(Kind kind, Duration low, Duration high)
      : kind_(kind), low_(low), high_(high) {}

  Kind kind_ = Kind::constant;
  Duration low_{}, high_{};  ///< both the value or mean, except for uniform
};

}  // namespace lockbench::loadgen
