#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "strategies/duration.h"

// Statistics of a stream, in constant memory. None is thread-safe.
namespace lockbench::watch {

/// Number of different hashes, by HyperLogLog (Flajolet, Fusy, Gandouet and Meunier, 2007): within
/// about 2 %; small numbers are nearly exact.
class Distinct {
 public:
  void add(std::uint64_t hash) {
    const std::size_t place = hash >> (64 - kBits);
    const auto rank =
        static_cast<std::uint8_t>(std::min(std::countl_zero(hash << kBits), 64 - kBits) + 1);
    ranks_[place] = std::max(ranks_[place], rank);
  }
  std::uint64_t count() const {
    const auto places = static_cast<double>(ranks_.size());
    double sum = 0;
    std::size_t empty = 0;
    for (const std::uint8_t rank : ranks_) {
      sum += std::ldexp(1.0, -rank);
      empty += rank == 0 ? 1 : 0;
    }
    const double alpha = 0.7213 / (1 + 1.079 / places);
    double estimate = alpha * places * places / sum;
    // For small numbers, counting the empty places (linear counting) is more precise.
    if (estimate <= 2.5 * places && empty > 0) {
      estimate = places * std::log(places / static_cast<double>(empty));
    }
    return static_cast<std::uint64_t>(std::llround(estimate));
  }

 private:
  static constexpr int kBits = 12;
  std::array<std::uint8_t, std::size_t{1} << kBits> ranks_{};
};

/// Events in each of the latest seconds.
class PerSecond {
 public:
  void add(TimePoint at, std::uint64_t events = 1) {
    const std::int64_t second = second_of(at);
    if (second <= latest_ - kSeconds) return;
    if (latest_ < 0 || second - latest_ >= kSeconds) {
      counts_.fill(0);
      latest_ = std::max(latest_, second);
    }
    for (; latest_ < second;) counts_[static_cast<std::size_t>(++latest_ % kSeconds)] = 0;
    counts_[static_cast<std::size_t>(second % kSeconds)] += events;
  }
  /// Mean over the last ten complete seconds, or since `began` if that is less.
  double rate(TimePoint now, TimePoint began) const {
    constexpr std::int64_t kLongest = 10;
    const std::int64_t end = second_of(now);
    const std::int64_t begin = std::max(end - kLongest, second_of(began));
    // No second is complete yet: use the present one.
    if (begin >= end) return static_cast<double>(at(end));
    std::uint64_t events = 0;
    for (std::int64_t second = begin; second < end; ++second) events += at(second);
    return static_cast<double>(events) / static_cast<double>(end - begin);
  }

 private:
  static constexpr std::int64_t kSeconds = 16;

  static std::int64_t second_of(TimePoint at) {
    return std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count();
  }
  std::uint64_t at(std::int64_t second) const {
    if (second > latest_ || second <= latest_ - kSeconds) return 0;
    return counts_[static_cast<std::size_t>(second % kSeconds)];
  }

  std::array<std::uint64_t, kSeconds> counts_{};
  std::int64_t latest_ = -1;
};

}  // namespace lockbench::watch
