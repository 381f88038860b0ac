#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/duration.h"

// What can be said of a stream in memory that does not grow with it. None of these is thread-safe.
namespace lockbench::watch {

/// How many different hashes were added, by HyperLogLog (Flajolet, Fusy, Gandouet and Meunier,
/// 2007): within 2 % or so; few are nearly exact.
class Distinct {
 public:
  void add(std::uint64_t hash);
  std::uint64_t count() const;

 private:
  static constexpr int kBits = 12;
  std::array<std::uint8_t, std::size_t{1} << kBits> ranks_{};
};

/// Who comes most often, by Space-Saving (Metwally, Agrawal and El Abbadi, 2005).
class Frequent {
 public:
  void add(std::uint64_t hash);
  /// At least so many came from the one that came most often.
  std::uint64_t most() const;

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

  void add(TimePoint at, std::uint64_t events = 1);
  /// Nothing is known of these seconds: `finished` leaves them out.
  void leave_out(TimePoint from, TimePoint to);
  /// Per second, over the last ten that are over, or as many as there were since `began`.
  double rate(TimePoint now, TimePoint began) const;
  /// Those of the seconds that are over, oldest first, since the second after `began`.
  std::vector<std::uint32_t> finished(TimePoint now, TimePoint began) const;

 private:
  /// Nothing: it is left out.
  std::optional<std::uint32_t> at(std::int64_t second) const;

  std::vector<std::uint32_t> counts_;
  std::int64_t latest_ = -1;
};

/// How low a number was in each of the last 30 seconds.
class Lows {
 public:
  /// From `at` on it is `value`.
  void set(TimePoint at, std::uint64_t value);
  /// The lowest from `from` to `to` seconds ago, of which `to` is not part.
  std::uint64_t lowest(TimePoint now, std::int64_t from, std::int64_t to);
  bool known_for(TimePoint now, std::int64_t seconds) const;

 private:
  void advance(std::int64_t second);

  static constexpr std::size_t kSeconds = 32;
  std::array<std::uint64_t, kSeconds> lows_{};
  std::int64_t first_ = -1, latest_ = -1;
  std::uint64_t value_ = 0;
};

}  // namespace lockbench::watch
