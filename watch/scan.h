#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watch/books.h"
#include "watch/ledger.h"

// What a look at all locks adds to a picture: ages, long holds, the worst locks. For one thread.
namespace lockbench::watch {

/// Locks in a picture.
inline constexpr std::size_t kMostWorst = 20;

/// What may be wrong with a lock, the most urgent first, with its weight in hurt_of().
struct Trouble {
  std::uint64_t Figures::*count;
  double weight;
  std::string_view name;  ///< empty: not a trouble by itself
};
inline constexpr auto kTroubles = std::to_array<Trouble>({
    {&Figures::renewal_stopped_now, 20, "renewal stopped"},
    {&Figures::without_ttl_now, 20, "no TTL"},
    {&Figures::held_long_now, 20, "held long"},
    {&Figures::taken_over, 10, "taken over"},
    {&Figures::owner_changed, 20, "owner changed"},
    {&Figures::expired_while_held, 10, "expired"},
    {&Figures::session_lost, 5, "session lost"},
    {&Figures::without_ttl, 2, ""},
    // Order locks without trouble by how busy they are.
    {&Figures::most_waiting, 1e-3, ""},
    {&Figures::acquisitions, 1e-6, ""},
});

inline std::string trouble_of(const Figures& lock) {
  for (const Trouble& trouble : kTroubles) {
    if (lock.*trouble.count > 0) return std::string(trouble.name);
  }
  return "";
}

/// How bad the lock's state is; only good for ordering locks.
inline double hurt_of(const Figures& lock, std::uint64_t waiting) {
  auto hurt = static_cast<double>(waiting);
  for (const Trouble& trouble : kTroubles) {
    hurt += trouble.weight * static_cast<double>(lock.*trouble.count);
  }
  return hurt;
}

/// `now`: until when its state is known.
inline Figures figures_of(const LockRecord& record, TimePoint now, bool held_long) {
  Figures figures;
  static_cast<Counts&>(figures) = record.counts;
  figures.held_now = record.holders.size();
  figures.without_ttl_now = record.is_leak(now) ? 1 : 0;
  figures.held_long_now = held_long ? 1 : 0;
  figures.renewal_stopped_now = record.renewal_stopped(now) ? 1 : 0;
  return figures;
}

/// From when on a holding of a family is long.
struct LongFrom {
  Duration bound{};
  bool only_if_silent = false;  ///< not if the holder shows that it is alive, as a leader does
};

inline LongFrom long_from(const FamilyBook& book, const LedgerOptions& options) {
  constexpr std::uint64_t kFewest = 20;
  constexpr int kTimesP99 = 10, kTimesLongest = 20;
  constexpr Duration kNeverLong = std::chrono::seconds(1), kShortest = std::chrono::minutes(1),
                     kWithoutAny = std::chrono::hours(1);
  const loadgen::HistogramSnapshot& hold = book.known().holds;
  if (options.held_longer) return {*options.held_longer};
  if (hold.count() >= kFewest) return {std::max(kTimesP99 * hold.percentile(0.99), kNeverLong)};
  if (hold.count() == 0) return {kWithoutAny, true};
  return {std::max<Duration>(kTimesLongest * hold.max, kShortest), true};
}

/// Age of the oldest claim, in seconds.
inline std::optional<double> longest_of(const std::vector<Claim>& claims, TimePoint now) {
  std::optional<double> longest;
  for (const Claim& claim : claims) {
    const Duration age = std::max(now - claim.since, Duration::zero());
    longest = std::max(longest.value_or(0), seconds(age));
  }
  return longest;
}

/// Adds to families the figures that need each lock's record, and finds the worst locks.
class Scan {
 public:
  explicit Scan(std::vector<LongFrom> bounds)
      : bounds_(std::move(bounds)), most_waiting_(bounds_.size()) {}

  /// `now`: until when the lock's state is known.
  void look(std::size_t place, LockRecord& record, FamilyPicture& family, FamilyBook& book,
            TimePoint now) {
    const Figures figures = figures_of(record, now, is_held_long(record, now));
    if (figures.held_long_now > 0 && !std::exchange(record.long_counted, true)) {
      book.held_long(record);
    }
    if (figures.renewal_stopped_now > 0 && !std::exchange(record.stopped_counted, true)) {
      book.renewal_stopped(record);
    }
    if (figures.held_long_now > 0) family.long_from = bounds_[record.family].bound;
    family.oldest_hold = std::max(family.oldest_hold, longest_of(record.holders, now).value_or(0));
    family.oldest_wait = std::max(family.oldest_wait, longest_of(record.waiters, now).value_or(0));
    family.without_ttl_now += figures.without_ttl_now;
    family.held_long_now += figures.held_long_now;
    family.renewal_stopped_now += figures.renewal_stopped_now;
    if (record.waiting > most_waiting_[record.family]) {
      most_waiting_[record.family] = record.waiting;
      family.most_waited_for = record.name;
    }
    keep(place, hurt_of(figures, record.waiting));
  }

  bool is_held_long(const LockRecord& record, TimePoint now) const {
    const auto held = longest_of(record.holders, now);
    const LongFrom& from = bounds_[record.family];
    if (!held || *held <= seconds(from.bound)) return false;
    // It is kept on purpose.
    if (record.given_back || record.never_released) return false;
    return !from.only_if_silent || !record.shows_life(now);
  }

  /// Places of the worst locks, the worst first.
  std::vector<std::size_t> worst() const {
    std::vector<std::size_t> places;
    for (const auto& [hurt, place] : worst_) places.push_back(place);
    return places;
  }

 private:
  void keep(std::size_t place, double hurt) {
    if (worst_.size() == kMostWorst) {
      const auto least = std::prev(worst_.end());
      if (hurt <= least->first) return;
      worst_.erase(least);
    }
    worst_.emplace(hurt, place);
  }

  const std::vector<LongFrom> bounds_;
  std::vector<std::uint64_t> most_waiting_;
  std::set<std::pair<double, std::size_t>, std::greater<>> worst_;
};

inline LockPicture picture_of(const LockRecord& record, const FamilyPicture& family, bool held_long,
                              TimePoint now) {
  LockPicture picture;
  picture.figures = figures_of(record, now, held_long);
  picture.store = family.store;
  picture.family = family.family;
  picture.lock = record.name;
  picture.shape = facts_of(record.shape).name;
  picture.trouble = trouble_of(picture.figures);
  if (!record.holders.empty()) {
    const Claim& first = record.holders.front();
    picture.holder = first.owner == kUnnamed ? "?"
                     : first.shown.empty()   ? shown_hash(first.owner)
                                             : first.shown;
  }
  picture.held_seconds = longest_of(record.holders, now);
  if (record.expiry) picture.ttl_left_seconds = std::max(0.0, seconds(*record.expiry - now));
  if (family.waiting_now) picture.waiting_now = record.waiting;
  picture.acquisitions = record.counts.acquisitions;
  picture.expired_while_held = record.counts.expired_while_held;
  picture.most_waiting = record.counts.most_waiting;
  return picture;
}

}  // namespace lockbench::watch
