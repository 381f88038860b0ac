#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

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

/// The most frequent hash, by Space-Saving (Metwally, Agrawal and El Abbadi, 2005).
class Frequent {
 public:
  void add(std::uint64_t hash) {
    auto found = std::ranges::find(entries_, hash, &Entry::hash);
    if (found == entries_.end() && entries_.size() < kEntries) {
      entries_.push_back({hash, 1, 0});
      return;
    }
    if (found == entries_.end()) {
      found = std::ranges::min_element(entries_, {}, &Entry::count);
      found->hash = hash;
      found->error = found->count;
    }
    ++found->count;
  }
  /// Lower bound on the count of the most frequent hash.
  std::uint64_t most() const {
    std::uint64_t most = 0;
    for (const Entry& entry : entries_) most = std::max(most, entry.count - entry.error);
    return most;
  }

 private:
  static constexpr std::size_t kEntries = 64;
  struct Entry {
    std::uint64_t hash = 0, count = 0, error = 0;
  };
  std::vector<Entry> entries_;
};

/// Events in each of the latest seconds.
class PerSecond {
 public:
  explicit PerSecond(std::size_t seconds) : counts_(seconds) {}

  void add(TimePoint at, std::uint64_t events = 1) {
    const std::int64_t second = second_of(at);
    const auto size = static_cast<std::int64_t>(counts_.size());
    if (second <= latest_ - size) return;
    if (latest_ < 0 || second - latest_ >= size) {
      std::fill(counts_.begin(), counts_.end(), 0);
      latest_ = std::max(latest_, second);
    }
    for (; latest_ < second;) counts_[static_cast<std::size_t>(++latest_ % size)] = 0;
    std::uint32_t& count = counts_[static_cast<std::size_t>(second % size)];
    count = static_cast<std::uint32_t>(std::min<std::uint64_t>(kLeftOut, count + events));
  }
  /// Marks seconds of which nothing is known: `finished` leaves them out.
  void leave_out(TimePoint from, TimePoint to) {
    const std::int64_t last = second_of(to);
    const auto size = static_cast<std::int64_t>(counts_.size());
    for (std::int64_t second = std::max(second_of(from), last - size + 1); second <= last;
         ++second) {
      add(TimePoint(std::chrono::seconds(second)), kLeftOut);
    }
  }
  /// Events in the last `most` complete seconds.
  std::uint64_t latest(TimePoint now, std::int64_t most) const {
    const std::int64_t end = second_of(now);
    std::uint64_t events = 0;
    for (std::int64_t second = end - most; second < end; ++second) events += at(second).value_or(0);
    return events;
  }
  /// Mean over the last ten complete seconds, or since `began` if that is less.
  double rate(TimePoint now, TimePoint began) const {
    constexpr std::int64_t kLongest = 10;
    const std::int64_t end = second_of(now);
    const std::int64_t begin = std::max(end - kLongest, second_of(began));
    // No second is complete yet: use the present one.
    if (begin >= end) return static_cast<double>(at(end).value_or(0));
    return static_cast<double>(latest(now, end - begin)) / static_cast<double>(end - begin);
  }
  /// Counts of the complete seconds, the oldest first, from the second after `began` on.
  std::vector<std::uint32_t> finished(TimePoint now, TimePoint began) const {
    const std::int64_t end = second_of(now);
    const auto size = static_cast<std::int64_t>(counts_.size());
    std::vector<std::uint32_t> counts;
    // The present second takes a place too.
    const std::int64_t begin = std::max(end - size, second_of(began)) + 1;
    for (std::int64_t second = begin; second < end; ++second) {
      if (const auto count = at(second)) counts.push_back(*count);
    }
    return counts;
  }

 private:
  /// Marks a second that is left out; counts stay below it.
  static constexpr std::uint32_t kLeftOut = std::numeric_limits<std::uint32_t>::max();

  static std::int64_t second_of(TimePoint at) {
    return std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count();
  }
  /// Nothing if the second is left out.
  std::optional<std::uint32_t> at(std::int64_t second) const {
    const auto size = static_cast<std::int64_t>(counts_.size());
    if (second > latest_ || second <= latest_ - size) return 0;
    const std::uint32_t count = counts_[static_cast<std::size_t>(second % size)];
    return count == kLeftOut ? std::nullopt : std::optional(count);
  }

  std::vector<std::uint32_t> counts_;
  std::int64_t latest_ = -1;
};

/// The lowest value of a number in each of the last complete parts of 10 s.
class Lows {
 public:
  static constexpr std::size_t kParts = 5;
  using Parts = std::array<std::uint64_t, kParts>;

  /// The number becomes `value` at `at`.
  void set(TimePoint at, std::uint64_t value) {
    advance(at);
    value_ = value;
    lows_.back() = std::min(lows_.back(), value);
  }
  /// The oldest part first; nothing if the number has not been known for that long.
  std::optional<Parts> parts(TimePoint now) {
    advance(now);
    if (lows_.front() == kUnknown) return std::nullopt;
    Parts parts{};
    std::copy_n(lows_.begin(), kParts, parts.begin());
    return parts;
  }

 private:
  void advance(TimePoint at) {
    const std::int64_t part = at.time_since_epoch() / std::chrono::seconds(10);
    // Beyond kParts, one more shift changes nothing.
    part_ = std::max(part_, part - static_cast<std::int64_t>(lows_.size()));
    for (; part_ < part; ++part_) {
      std::shift_left(lows_.begin(), lows_.end(), 1);
      lows_.back() = value_;
    }
  }

  static constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

  static constexpr std::array<std::uint64_t, kParts + 1> unknown() {
    std::array<std::uint64_t, kParts + 1> lows{};
    lows.fill(kUnknown);
    return lows;
  }

  std::array<std::uint64_t, kParts + 1> lows_ = unknown();  ///< the last is of the present part
  std::int64_t part_ = -1;
  std::uint64_t value_ = kUnknown;
};

}  // namespace lockbench::watch
