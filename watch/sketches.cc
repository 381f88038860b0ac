#include "watch/sketches.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace lockbench::watch {
namespace {

/// A second that is left out; no other counts as many.
constexpr std::uint32_t kLeftOut = std::numeric_limits<std::uint32_t>::max();

std::int64_t second_of(TimePoint at) {
  return std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count();
}

}  // namespace

void Distinct::add(std::uint64_t hash) {
  const std::size_t place = hash >> (64 - kBits);
  const auto rank =
      static_cast<std::uint8_t>(std::min(std::countl_zero(hash << kBits), 64 - kBits) + 1);
  ranks_[place] = std::max(ranks_[place], rank);
}

std::uint64_t Distinct::count() const {
  const auto places = static_cast<double>(ranks_.size());
  double sum = 0;
  std::size_t empty = 0;
  for (const std::uint8_t rank : ranks_) {
    sum += std::ldexp(1.0, -rank);
    empty += rank == 0 ? 1 : 0;
  }
  const double alpha = 0.7213 / (1 + 1.079 / places);
  double estimate = alpha * places * places / sum;
  // Few leave places empty, and how many tells more.
  if (estimate <= 2.5 * places && empty > 0) {
    estimate = places * std::log(places / static_cast<double>(empty));
  }
  return static_cast<std::uint64_t>(std::llround(estimate));
}

void Frequent::add(std::uint64_t hash) {
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& entry) { return entry.hash == hash; });
  if (found == entries_.end() && entries_.size() < kEntries) {
    entries_.push_back({hash, 1, 0});
    return;
  }
  if (found == entries_.end()) {
    found = std::min_element(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) { return a.count < b.count; });
    found->hash = hash;
    found->error = found->count;
  }
  ++found->count;
}

std::uint64_t Frequent::most() const {
  std::uint64_t most = 0;
  for (const Entry& entry : entries_) most = std::max(most, entry.count - entry.error);
  return most;
}

void PerSecond::add(TimePoint at, std::uint64_t events) {
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

void PerSecond::leave_out(TimePoint from, TimePoint to) {
  const std::int64_t last = second_of(to);
  const auto size = static_cast<std::int64_t>(counts_.size());
  for (std::int64_t second = std::max(second_of(from), last - size + 1); second <= last; ++second) {
    add(TimePoint(std::chrono::seconds(second)), kLeftOut);
  }
}

std::optional<std::uint32_t> PerSecond::at(std::int64_t second) const {
  const auto size = static_cast<std::int64_t>(counts_.size());
  if (second > latest_ || second <= latest_ - size) return 0;
  const std::uint32_t count = counts_[static_cast<std::size_t>(second % size)];
  return count == kLeftOut ? std::nullopt : std::optional(count);
}

double PerSecond::rate(TimePoint now, TimePoint began) const {
  constexpr std::int64_t kLongest = 10;
  const std::int64_t end = second_of(now);
  const std::int64_t begin = std::max(end - kLongest, second_of(began));
  // In the first second there is none that is over.
  if (begin >= end) return static_cast<double>(at(end).value_or(0));
  std::uint64_t events = 0;
  for (std::int64_t second = begin; second < end; ++second) events += at(second).value_or(0);
  return static_cast<double>(events) / static_cast<double>(end - begin);
}

std::vector<std::uint32_t> PerSecond::finished(TimePoint now, TimePoint began) const {
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

void Lows::advance(std::int64_t second) {
  if (latest_ < 0) {
    first_ = second;
    latest_ = second - 1;
  }
  const auto size = static_cast<std::int64_t>(kSeconds);
  latest_ = std::max(latest_, second - size);
  while (latest_ < second) lows_[static_cast<std::size_t>(++latest_ % size)] = value_;
}

void Lows::set(TimePoint at, std::uint64_t value) {
  const std::int64_t second = second_of(at);
  advance(second);
  value_ = value;
  std::uint64_t& low = lows_[static_cast<std::size_t>(latest_) % kSeconds];
  low = std::min(low, value);
}

std::uint64_t Lows::lowest(TimePoint now, std::int64_t from, std::int64_t to) {
  const std::int64_t end = second_of(now);
  advance(end);
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  for (std::int64_t second = std::max(end - from, first_); second < end - to; ++second) {
    lowest = std::min(lowest, lows_[static_cast<std::size_t>(second) % kSeconds]);
  }
  return lowest == std::numeric_limits<std::uint64_t>::max() ? value_ : lowest;
}

bool Lows::known_for(TimePoint now, std::int64_t seconds) const {
  return first_ >= 0 && second_of(now) - first_ >= seconds;
}

}  // namespace lockbench::watch
