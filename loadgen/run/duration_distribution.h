#pragma once

#include <random>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/duration.h"

namespace lockbench::loadgen {

/// How long something takes, each time anew: always the same, exponential or uniform. A value; by
/// default always zero.
class DurationDistribution {
 public:
  /// No draw is longer; an exponential one is cut there.
  static constexpr Duration kLongestDraw = std::chrono::hours(1);

  DurationDistribution() = default;

  /// Durations must not be negative, the mean not above kLongestDraw, `from` not above `to`: else
  /// std::invalid_argument.
  static DurationDistribution constant(Duration value);
  static DurationDistribution exponential(Duration mean);
  static DurationDistribution uniform(Duration from, Duration to);

  /// "2ms", "exp(2ms)" or "uniform(1ms,3ms)"; spaces are allowed round each part. The error says
  /// what is wrong.
  static tl::expected<DurationDistribution, std::string> parse(std::string_view text);

  Duration draw(std::mt19937_64& random) const;
  Duration mean() const;
  bool is_zero() const { return low_ == Duration::zero() && high_ == Duration::zero(); }

  /// As parse reads it back.
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
