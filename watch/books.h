#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "watch/lock_record.h"
#include "watch/picture.h"
#include "watch/sketches.h"

// The books of a ledger: all locks, the recent events of the few worst ones, and families. For one
// thread.
namespace lockbench::watch {

/// The locks that are followed, at most `most`. When full, a new lock takes the place of one that
/// has been free for a while.
class LockTable {
 public:
  explicit LockTable(std::uint64_t most) : most_(most) {}

  /// The place of the lock with this hash; nothing if it is not followed.
  std::optional<std::size_t> find(std::uint64_t key) const {
    const auto found = places_.find(key);
    return found == places_.end() ? std::nullopt : std::optional<std::size_t>(found->second);
  }
  /// Adds an empty record and returns its place; nothing if all places are taken by locks in use.
  std::optional<std::size_t> add(std::uint64_t key, TimePoint now) {
    std::optional<std::size_t> place;
    if (records_.size() < most_) {
      place = records_.size();
      records_.emplace_back();
    } else {
      place = forget_one(now);
      if (!place) return std::nullopt;
      records_[*place] = LockRecord();
    }
    records_[*place].key = key;
    places_.emplace(key, static_cast<std::uint32_t>(*place));
    return place;
  }
  bool forgot_any() const { return forgot_any_; }

  LockRecord& at(std::size_t place) { return records_[place]; }
  const LockRecord& at(std::size_t place) const { return records_[place]; }
  std::size_t size() const { return records_.size(); }

 private:
  std::optional<std::size_t> forget_one(TimePoint now) {
    const std::size_t looks = std::min(kMostLooks, records_.size());
    for (std::size_t i = 0; i < looks; ++i) {
      const std::size_t place = hand_;
      hand_ = (hand_ + 1) % records_.size();
      const LockRecord& record = records_[place];
      if (!record.is_free() || now - record.at < kForgetAfter) continue;
      places_.erase(record.key);
      forgot_any_ = true;
      return place;
    }
    return std::nullopt;
  }

  /// Longer than the second within which an expired lock can still be taken over.
  static constexpr Duration kForgetAfter = std::chrono::seconds(10);
  /// An addition looks at this many places at most, so that it stays cheap.
  static constexpr std::size_t kMostLooks = 256;

  const std::uint64_t most_;
  std::deque<LockRecord> records_;  ///< grows without moving a million records
  std::unordered_map<std::uint64_t, std::uint32_t> places_;
  std::size_t hand_ = 0;  ///< where the next search for a lock to forget starts
  bool forgot_any_ = false;
};

/// The latest events of the worst locks, of at most `most` locks.
class Histories {
 public:
  using History = std::deque<results::ObservedLock::Moment>;
  explicit Histories(std::size_t most) : most_(most) {}

  /// Null for a lock without a history.
  History* find(std::size_t place) {
    const auto found = std::ranges::find(all_, place, [](const auto& one) { return one.first; });
    return found == all_.end() ? nullptr : &found->second;
  }
  /// Starts a history for a lock without one if there is room, or if the lock hurts clearly more
  /// than another that has one. `hurt(place)`: how bad a lock is.
  template <class Hurt>
  History* find_or_admit(std::size_t place, const Hurt& hurt) {
    if (History* found = find(place)) return found;
    if (all_.size() < most_) return &all_.emplace_back(place, History()).second;
    // Compare with one candidate per call: comparing with all would cost more than everything else.
    constexpr double kClearly = 1.5;
    hand_ = (hand_ + 1) % all_.size();
    auto& candidate = all_[hand_];
    if (hurt(place) <= kClearly * hurt(candidate.first)) return nullptr;
    candidate = {place, {}};
    return &candidate.second;
  }
  /// Adds the events of a sighting; without any, notes that the queue changed. Drops the oldest
  /// entries beyond kLongest.
  static void add(History& history, const Happenings& happenings, const LockRecord& record,
                  TimePoint began) {
    constexpr std::size_t kLongest = 256;
    const auto add_one = [&](TimePoint at, std::string_view what, std::string holder) {
      if (history.size() == kLongest) history.pop_front();
      history.push_back({.t = std::max(0.0, seconds(at - began)),
                         .what = std::string(what),
                         .holder = std::move(holder),
                         .waiting = record.waiting});
    };
    for (const Happening& event : happenings.list) {
      add_one(event.at, name_of(event.kind),
              event.owner == kUnnamed ? "" : shown_hash(event.owner));
    }
    if (happenings.list.empty()) add_one(record.at, "queue_changed", "");
  }
  void forget(std::size_t place) {
    std::erase_if(all_, [&](const auto& one) { return one.first == place; });
  }

 private:
  const std::size_t most_;
  std::vector<std::pair<std::size_t, History>> all_;
  std::size_t hand_ = 0;
};

/// Figures of a family of locks, in memory that does not grow with their number.
class FamilyBook {
 public:
  FamilyBook(std::string store, std::string endpoint, std::string family, TimePoint began)
      : began_(began) {
    known_.store = std::move(store);
    known_.endpoint = std::move(endpoint);
    known_.family = std::move(family);
  }

  /// Adds the events of a sighting of one of its locks. `held` and `waiting`: holders and waiters
  /// before it; the record has the present ones.
  void take(const Happenings& happenings, const LockRecord& record, std::uint64_t held,
            std::uint64_t waiting) {
    using Kind = Happening::Kind;
    add(known_, happenings);
    for (const Happening& event : happenings.list) {
      if (event.lasted) known_.holds.record(*event.lasted);
      if (event.margin) {
        const double margin = seconds(*event.margin);
        known_.margin_min = std::min(known_.margin_min.value_or(margin), margin);
      }
      if (event.kind == Kind::expired && event.was_renewed) ++known_.expired_after_renewal;
      if (const std::string_view wrong = wrong_with(event); !wrong.empty()) {
        known_.latest_lock.insert_or_assign(std::string(wrong), record.name);
      }
      const bool tells_owner = event.kind == Kind::granted || event.kind == Kind::named;
      if (tells_owner && event.owner != kUnnamed) {
        owners_.add(event.owner);
        if (event.counted) {
          frequent_.add(event.owner);
          ++named_;
        }
      }
      if (is_end(event.kind)) ++known_.ended;
      written_over_ |= event.kind == Kind::replaced || event.kind == Kind::owner_changed;
      if (event.ttl) {
        longest_ttl_ = std::max(longest_ttl_, *event.ttl);
        shortest_ttl_ = std::min(shortest_ttl_.value_or(*event.ttl), *event.ttl);
      }
      if (event.kind != Kind::granted || !event.counted) continue;
      acquired_.add(event.at);
      if (event.waited) known_.waits.record(*event.waited);
    }
    known_.ended += happenings.unseen_holdings;
    if (happenings.unseen_holdings > 0) acquired_.add(record.at, happenings.unseen_holdings);
    coalesced_ = coalesced_ || happenings.coalesced;
    unexplained_ += happenings.unexplained;
    changes_per_holding_ =
        std::max(changes_per_holding_, happenings.changes_of_holding.value_or(0));
    known_.held_now += record.holders.size() - held;
    if (record.waiting == waiting) return;
    known_.waiting_now = known_.waiting_now.value_or(0) + record.waiting - waiting;
    known_.most_waiting = std::max(known_.most_waiting, *known_.waiting_now);
    queue_.set(record.at, *known_.waiting_now);
  }
  /// Notes that the store tells who waits, or how many.
  void waits_known() {
    if (!known_.waiting_now) known_.waiting_now = 0;
  }
  /// Notes that a holding lasts too long, or that its renewals have stopped. Once for each.
  void held_long(const LockRecord& record) {
    ++known_.held_long;
    known_.latest_lock.insert_or_assign("held_long", record.name);
  }
  void renewal_stopped(const LockRecord& record) {
    ++known_.renewals_stopped;
    known_.latest_lock.insert_or_assign("renewal_stopped", record.name);
  }
  /// Whether nothing but expiries was seen to end its locks: a schedule, or holders that always
  /// overrun; then another client would soon take the lock, or wait for it.
  bool is_never_released() const {
    constexpr std::uint64_t kFewest = 5;
    const std::uint64_t expired = known_.expired_while_held + known_.lapsed;
    return expired >= kFewest && expired == known_.ended &&
           known_.renewals + known_.taken_over + known_.most_waiting == 0;
  }
  /// Adds a lock. `forgets`: locks have been forgotten, so this one may have been counted before.
  void lock_added(std::uint64_t key, bool forgets) {
    locks_.add(key);
    forgot_ = forgot_ || forgets;
    if (!forgot_) ++known_.locks;
  }

  /// The figures, except those that need each lock's record: the oldest, the leaks, the long holds.
  /// `missed`: changes that its sources could not look at. `gaps`: they did not see all the time.
  FamilyPicture picture(TimePoint now, Accuracy of_source, std::uint64_t missed, bool gaps) {
    FamilyPicture picture = known_;
    if (forgot_) picture.locks = std::max(picture.locks, locks_.count());
    picture.owners = owners_.count();
    if (named_ > 0) {
      picture.largest_share = static_cast<double>(frequent_.most()) / static_cast<double>(named_);
    }
    picture.owner_share = share(named_, picture.acquisitions + unexplained_ / kGrantAndEnd);
    picture.hold_share = share(picture.holds.count(), picture.ended + unexplained_ / kGrantAndEnd);
    picture.acquisitions_per_second = acquired_.rate(now, began_);
    if (picture.hold_share >= kFewestSeen) picture.hold = loadgen::to_distribution(picture.holds);
    if (picture.waiting_now) picture.wait = loadgen::to_distribution(picture.waits);
    // If whole holdings were seen and no changes were ever merged, each change was seen.
    const bool all_seen =
        of_source == Accuracy::at_least && !coalesced_ && picture.holds.count() > 0;
    picture.sight = all_seen ? Accuracy::exact : of_source;
    picture.missed = missed;
    if (missed > 0 || gaps) picture.sight = std::max(of_source, Accuracy::at_least);
    picture.accuracy = name_of(picture.sight);
    picture.queue = queue_.parts(now);
    picture.acquired_meanwhile = acquired_.latest(now, 10 * (Lows::kParts + 1));
    return picture;
  }
  /// The most seen of a whole holding; 0: none was seen yet, or renewals make it tell nothing.
  std::uint64_t changes_per_holding() const {
    return known_.renewals > 0 ? 0 : changes_per_holding_;
  }
  /// Of the grants, but at most a minute.
  Duration longest_ttl() const { return std::min<Duration>(longest_ttl_, std::chrono::minutes(1)); }
  /// Of the grants; nothing if locks of the family were written over, so that an end before the
  /// TTL need not be a release.
  std::optional<Duration> shortest_ttl() const {
    return written_over_ ? std::nullopt : shortest_ttl_;
  }
  /// The figures so far, without those that picture() computes.
  const FamilyPicture& known() const { return known_; }

 private:
  /// If fewer holdings were seen whole, their lengths are withheld: they are mostly the long ones.
  static constexpr double kFewestSeen = 0.1;

  static double share(std::uint64_t part, std::uint64_t all) {
    return all == 0 ? 1 : std::min(1.0, static_cast<double>(part) / static_cast<double>(all));
  }

  const TimePoint began_;
  FamilyPicture known_;
  PerSecond acquired_{64};
  Lows queue_;
  Distinct owners_, locks_;
  Frequent frequent_;
  bool forgot_ = false, coalesced_ = false, written_over_ = false;
  Duration longest_ttl_{};
  std::optional<Duration> shortest_ttl_;
  std::uint64_t changes_per_holding_ = 0;  ///< most seen; 0: none yet
  std::uint64_t unexplained_ = 0, named_ = 0;
};

}  // namespace lockbench::watch
