#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "watch/sources/lock_state.h"
#include "watch/sources/redis_lock.h"

namespace lockbench::watch {

/// The keys that a watch of Redis must remember: those that changed and wait for a look, and those
/// that are held, with their end. Free keys are forgotten after the look, so a key that is not in
/// the book is free, once all existing keys have been found. Plain data, for one thread.
class RedisBook {
 public:
  /// How the server reports changes.
  enum class Way {
    tracking,       ///< it reports that a key has changed: a look tells how
    notifications,  ///< it reports each change and its kind: a look adds owner and TTL
  };
  RedisBook(std::size_t most_keys, Way way) : most_(most_keys), way_(way) {}

  /// A look at most this long after a change shows the effect of that change.
  static constexpr Duration kAtOnce = std::chrono::milliseconds(20);

  /// Notes a change of unknown kind. False: there is no room for the key.
  bool changed(const std::string& key, TimePoint at) {
    Entry* const entry = entry_of(key);
    if (entry == nullptr) return false;
    if (!std::exchange(entry->expiry_looked_at, false)) {
      if (entry->changes == 0 || std::exchange(entry->passed, false)) entry->changed_since = at;
      // The look will find one state for several changes.
      if (entry->queued && at - entry->changed_since > kAtOnce) ++missed_;
      ++entry->changes;
    }
    entry->changed_at = at;
    enqueue(key, *entry, entry->held ? kUrgent : kFresh, at);
    return true;
  }
  /// Notes a change of known kind.
  bool changed(const std::string& key, KeyEvent event, TimePoint at) {
    if (event == KeyEvent::none) return true;
    Entry* const entry = entry_of(key);
    if (entry == nullptr) return false;
    if (way_ == Way::notifications) {
      entry->disturbed = true;
      if (event == KeyEvent::released || event == KeyEvent::expired) {
        ended(key, *entry, event == KeyEvent::expired ? Ending::expired : Ending::released, at);
      } else if (event == KeyEvent::written) {
        written(key, *entry, at);
      } else {
        timed(key, *entry, at);
      }
      return true;
    }
    // An invalidation message reports the change itself.
    if (event == KeyEvent::expired) entry->ending = Ending::expired;
    if (event == KeyEvent::released) entry->ending = Ending::released;
    if (!entry->held && !entry->queued && !entry->expiry_looked_at) keys_.erase(key);
    return true;
  }
  /// Notes an existing key, which is new to the book or may have changed unnoticed, for a look if
  /// there is room.
  void found(const std::string& key, TimePoint at) {
    Entry* const entry = entry_of(key);
    if (entry == nullptr) return;
    if (entry->unknown && !entry->held && !std::exchange(entry->exists, true)) ++first_looks_left_;
    enqueue(key, *entry, kIdle, at);
  }
  /// All keys from before the watch have been found: from now on, others are new.
  void all_found() {
    all_found_ = true;
    freed_.clear();
  }
  /// Keys from before the watch that still wait for their first look.
  std::uint64_t first_looks_left() const { return first_looks_left_; }

  /// Notes that every held key may have changed.
  void all_changed(TimePoint at) {
    for (auto& [key, entry] : keys_) {
      if (!entry.held) continue;
      if (entry.changes++ == 0) entry.changed_since = at;
      entry.changed_at = at;
      enqueue(key, entry, kUrgent, at);
    }
  }
  /// Schedules looks at keys that should have expired by now; forgets keys whose changes led to
  /// nothing.
  void expire(TimePoint now) {
    while (!due_.empty() && due_.top().at <= now) {
      const Due due = due_.top();
      due_.pop();
      const auto found = keys_.find(due.key);
      // The key was renewed meanwhile and has another entry.
      if (found == keys_.end() || due_at(found->second) > now) continue;
      if (found->second.held) {
        // Where the server reports the expiry itself, a look only hurries it.
        enqueue(due.key, found->second, way_ == Way::notifications ? kIdle : kUrgent, now);
      } else if (!found->second.queued) {
        // It was free, changed once and is free: it was taken and released in one turn.
        if (found->second.passed) {
          ready_.push_back(free_lock(due.key, found->second.changed_at));
          ready_.back().changes = 2;
          ready_.back().changed_since = found->second.changed_since;
        }
        forget(found);
      }
    }
  }

  /// A key to look at, and as which type to read it.
  struct Turn {
    std::string key;
    KeyKind kind = KeyKind::unknown;
  };
  /// Changes of held keys come first, then the latest changes, of which a look shows the effect. So
  /// that nothing waits forever, some turns are for the others.
  std::optional<Turn> next(TimePoint now = {}) {
    demote(now);
    const unsigned of_turns = way_ == Way::notifications ? 2 : 4;
    const bool idle_first = ++turns_ % of_turns == 0;
    static constexpr std::array kUsually{kUrgent, kFresh, kIdle},
        kSometimes{kIdle, kUrgent, kFresh};
    for (const Line line : idle_first ? kSometimes : kUsually) {
      auto& waiting = lines_[line];
      while (!waiting.empty()) {
        const bool newest_first = line == kFresh;
        Waiting one = std::move(newest_first ? waiting.back() : waiting.front());
        newest_first ? waiting.pop_back() : waiting.pop_front();
        if (!waits(one.key, line)) continue;
        Entry& entry = keys_.find(one.key)->second;
        entry.queued = false;
        entry.disturbed = false;
        return Turn{.key = std::move(one.key), .kind = entry.kind};
      }
    }
    return std::nullopt;
  }
  bool nothing_waits() const {
    return std::ranges::all_of(lines_, [](const auto& line) { return line.empty(); });
  }
  /// Since when a change of a held key waits for a look; TimePoint::max(): none waits.
  TimePoint waits_since() {
    auto& waiting = lines_[kUrgent];
    while (!waiting.empty() && !waits(waiting.front().key, kUrgent)) waiting.pop_front();
    return waiting.empty() ? TimePoint::max() : waiting.front().at;
  }

  /// Combines the result of a look with the key's events into sightings, in order. `asked_at` and
  /// `answered_at` bound the moment of the state. No `state`: the key is not, or no longer, a lock.
  /// With notifications, those until the answer must have been taken before.
  std::vector<Sighting> looked(const std::string& key, KeyKind kind, std::optional<Sighting> state,
                               TimePoint asked_at, TimePoint answered_at) {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return {};
    Entry& entry = found->second;
    entry.kind = kind;
    if (way_ == Way::notifications && entry.disturbed) {
      // The answer may be from before or after that event, which has asked for another look.
      enqueue(key, entry, kIdle, answered_at);
      return {};
    }
    if (!state) {
      // The lock was overwritten by another type of value.
      std::vector<Sighting> seen;
      if (entry.held && !entry.withheld) seen.push_back(freed(key, asked_at, entry.ending));
      const auto named = companion_of(key);
      // A counter is never deleted, so there may be one for each lock that ever was.
      if (named && kind != KeyKind::other && companions_.size() < kMostNames) {
        companions_.insert(kind_of(key, *named));
      }
      if (!named && others_.size() < kMostNames) {
        others_.insert(key);
        other_stems_.insert(stem_of(key));
      }
      forget(found);
      return seen;
    }
    state->first_look = entry.unknown;
    const bool was_unknown = entry.unknown;
    known(entry);
    // Latest possible end, as the exact moment of the state is unknown.
    if (state->ttl_left) entry.ends = answered_at + *state->ttl_left + std::chrono::milliseconds(1);
    if (!state->ttl_left && !state->holders.empty()) entry.ends.reset();
    auto now = way_ == Way::notifications
                   ? completed(entry, *std::move(state), asked_at, answered_at)
                   : judged(entry, *std::move(state), asked_at, answered_at);
    if (now) {
      settle(key, entry, *now);
      std::vector<Sighting> seen;
      seen.push_back(*std::move(now));
      return seen;
    }
    if (!entry.held && !entry.queued) {
      // What was there before the watch may have been deleted by its only change.
      if (entry.changes == 0 || was_unknown) {
        forget(found);
      } else {
        remember(key, entry);
      }
    }
    return {};
  }
  /// Sightings that need no look.
  std::vector<Sighting> take_ready() { return std::exchange(ready_, {}); }
  /// Changes since the last call that no look can tell any more.
  std::uint64_t take_missed() { return std::exchange(missed_, 0); }

  /// Whether a key with such a name is part of a lock: if it is not one itself, and that lock is
  /// known, or keys like it were none.
  bool is_companion(const std::string& key, const Companion& named) const {
    if (named.lock.empty()) return true;
    if (is_held(key)) return false;
    const bool known = keys_.contains(named.lock) && !others_.contains(named.lock);
    return known || companions_.contains(kind_of(key, named));
  }
  bool is_held(const std::string& key) const {
    const auto found = keys_.find(key);
    return found != keys_.end() && found->second.held;
  }
  /// Up to `most` held hashes; each call continues after the previous one.
  std::vector<std::string> held_hashes(std::size_t most) {
    std::vector<std::string> held;
    auto place = keys_.find(last_of_held_);
    const std::size_t steps = std::min(keys_.size(), kFew * most);
    for (std::size_t i = 0; i < steps && held.size() < most; ++i) {
      if (place == keys_.end() || ++place == keys_.end()) place = keys_.begin();
      if (place->second.held && place->second.kind == KeyKind::hash) held.push_back(place->first);
    }
    if (!held.empty()) last_of_held_ = held.back();
    return held;
  }
  /// When expire() next has something to do; TimePoint::max(): nothing is scheduled.
  TimePoint next_expiry() const { return due_.empty() ? TimePoint::max() : due_.top().at; }
  std::size_t size() const { return keys_.size(); }

 private:
  /// Redis deletes an expired key no later than when it is read, so look a little after its end.
  static constexpr Duration kAfterExpiry = std::chrono::milliseconds(5);
  /// How long to wait for the message about the release of a short holding whose grant came alone.
  static constexpr Duration kOtherHalf = std::chrono::seconds(1);
  /// Names kept of keys that were looked at.
  static constexpr std::size_t kMostNames = 10'000, kFew = 64;

  /// Where a key waits for its look.
  enum Line : std::size_t { kUrgent, kFresh, kIdle, kLines };
  struct Waiting {
    std::string key;
    TimePoint at;
  };
  struct Entry {
    KeyKind kind = KeyKind::unknown;
    bool held = false, queued = false;
    bool unknown = false;  ///< it may be from before the watch, and was not looked at
    bool exists = false;   ///< a scan found it, and it was not looked at
    Line line = kIdle;
    std::size_t owner = 0;  ///< a hash; 0: not known
    std::uint64_t changes = 0;
    TimePoint changed_since{}, changed_at{};  ///< the first and the last one without a look
    std::optional<TimePoint> ends{};
    std::optional<Ending> ending{};  ///< as reported by an event
    bool expiry_looked_at = false;   ///< the late message about it is not another change
    bool passed = false;             ///< after its only change it is free
    bool disturbed = true;           ///< an event came since next()
    bool withheld = false;           ///< a grant that is not reported before a look
  };
  using Keys = std::unordered_map<std::string, Entry>;

  static std::size_t hash_of(const std::string& owner) { return std::hash<std::string>{}(owner); }

  static Sighting freed(const std::string& key, TimePoint at, std::optional<Ending> ended) {
    Sighting seen = free_lock(key, at);
    seen.ended = ended;
    seen.changes = 1;
    return seen;
  }
  /// "lock:order::fencing" of "lock:order:17:fencing".
  static std::string kind_of(const std::string& key, const Companion& named) {
    return stem_of(named.lock) + key.substr(named.lock.size());
  }
  /// The name without its last part: "lock:order:" of "lock:order:17".
  static std::string stem_of(const std::string& key) {
    const std::size_t end = key.find_last_of(":/.-_{");
    return key.substr(0, end == std::string::npos ? 0 : end + 1);
  }

  Entry* entry_of(const std::string& key) {
    const auto found = keys_.find(key);
    if (found != keys_.end()) return &found->second;
    if (keys_.size() >= most_) return nullptr;
    Entry& entry = keys_[key];
    entry.unknown = !all_found_ && !freed_.contains(key);
    return &entry;
  }
  void forget(Keys::iterator place) {
    known(place->second);
    if (!all_found_ && freed_.size() < most_) freed_.insert(place->first);
    keys_.erase(place);
  }
  /// The key's state is known from now on.
  void known(Entry& entry) {
    if (std::exchange(entry.exists, false)) --first_looks_left_;
    entry.unknown = false;
  }
  bool waits(const std::string& key, Line line) const {
    const auto found = keys_.find(key);
    return found != keys_.end() && found->second.queued && found->second.line == line;
  }
  void enqueue(const std::string& key, Entry& entry, Line line, TimePoint at) {
    // A key that waits already may wait in a better line, but a late look gains nothing from it.
    if (entry.queued && (line != kUrgent || entry.line == kUrgent)) return;
    entry.queued = true;
    entry.line = line;
    auto& waiting = lines_[line];
    waiting.push_back({key, at});
    // Keys that were forgotten or moved to another line leave their places behind.
    if (waiting.size() <= 2 * keys_.size() + kFew) return;
    std::erase_if(waiting, [&](const Waiting& one) { return !waits(one.key, line); });
  }
  /// Moves changes that no look can show at once any more to the others.
  void demote(TimePoint now) {
    auto& fresh = lines_[kFresh];
    while (!fresh.empty() && now - fresh.front().at > kAtOnce) {
      const Waiting late = std::move(fresh.front());
      fresh.pop_front();
      if (!waits(late.key, kFresh)) continue;
      Entry& entry = keys_.find(late.key)->second;
      entry.queued = false;
      enqueue(late.key, entry, kIdle, late.at);
    }
  }

  // Events of known kind, with Way::notifications.

  void ended(const std::string& key, Entry& entry, Ending how, TimePoint at) {
    const bool was_lock = entry.unknown && !entry.held && may_be_lock(key);
    if (was_lock) {
      // It was held since before the watch, but nobody looked.
      ready_.push_back(free_lock(key, at));
      ready_.back().holders.push_back({.owner = {}});
      ready_.back().first_look = true;
    }
    if (was_lock || (entry.held && !entry.withheld)) {
      ready_.push_back(freed(key, at, how));
    } else if (entry.withheld) {
      ++missed_;
    }
    forget(keys_.find(key));
  }
  void written(const std::string& key, Entry& entry, TimePoint at) {
    entry.changed_at = at;
    if (entry.held || entry.exists) {
      ++entry.changes;
      if (entry.changes > 1 && entry.queued) ++missed_;
      enqueue(key, entry, kUrgent, at);
      return;
    }
    entry.held = true;
    entry.changed_since = at;
    entry.withheld = !may_be_lock(key);
    if (!entry.withheld) ready_.push_back(granted(key, entry));
    enqueue(key, entry, kFresh, at);
  }
  void timed(const std::string& key, Entry& entry, TimePoint at) {
    const bool begins = entry.held && entry.owner == 0;  // SET with PX is two events
    entry.changed_at = at;
    if (!begins) ++entry.changes;
    enqueue(key, entry, begins ? kFresh : kUrgent, at);
  }
  /// False if its value was no lock's, or those of keys like it; of a key that may be part of
  /// another lock, until a look has shown that it is one itself.
  bool may_be_lock(const std::string& key) const {
    if (others_.contains(key)) return false;
    if (companion_of(key)) return stems_.contains(key);
    const std::string stem = stem_of(key);
    return !other_stems_.contains(stem) || stems_.contains(stem);
  }
  static Sighting granted(const std::string& key, const Entry& entry) {
    Sighting seen = free_lock(key, entry.changed_since);
    seen.holders.push_back({.owner = {}});
    seen.changes = 1;
    seen.first_look = entry.unknown;
    return seen;
  }
  /// What a look adds to the events; nothing if the events told it all.
  std::optional<Sighting> completed(Entry& entry, Sighting state, TimePoint asked_at,
                                    TimePoint answered_at) {
    const std::uint64_t changes = std::exchange(entry.changes, 0);
    const bool withheld = std::exchange(entry.withheld, false);
    state.at = asked_at;
    if (state.holders.empty()) {
      if (!entry.held) return std::nullopt;
      // No event told its end: FLUSHALL, or a replica that was not told yet.
      state.changes = 1;
      state.late = true;
      entry.held = !withheld;
      return withheld ? std::nullopt : std::optional(std::move(state));
    }
    if (stems_.size() < kMostNames) {
      stems_.insert(companion_of(state.lock) ? state.lock : stem_of(state.lock));
    }
    others_.erase(state.lock);
    if (entry.held && (entry.owner == 0 || changes > 0)) state.at = entry.changed_at;
    if (withheld) state.at = entry.changed_since;
    // What a name is added to has been reported.
    const bool tells_change = withheld || (entry.owner != 0 && changes > 0);
    state.changes = tells_change ? 1 : 0;
    if (state.ttl_left) *state.ttl_left += answered_at - state.at;
    return state;
  }

  /// With Way::tracking: the sighting from the key's state and its number of changes; nothing if it
  /// is too early to tell.
  std::optional<Sighting> judged(Entry& entry, Sighting state, TimePoint asked_at,
                                 TimePoint answered_at) {
    const bool is_free = state.holders.empty();
    const bool holder_is_gone =
        entry.held && (is_free || hash_of(state.holders.front().owner) != entry.owner);
    // After the end nobody else can delete the key, and a renewal would have been another change.
    const TimePoint noticed_at = entry.changes > 0 ? entry.changed_at : asked_at;
    const bool ran_out =
        entry.held && is_free && entry.changes <= 1 && entry.ends && noticed_at >= *entry.ends;
    // Wait for the message: it gives the time and the number of changes.
    const bool message_is_late = entry.changes == 0 && holder_is_gone && !ran_out;
    const bool release_is_untold = entry.changes == 1 && is_free && !entry.held;
    entry.passed = release_is_untold;
    if (message_is_late || release_is_untold) return std::nullopt;

    const std::uint64_t changes = std::exchange(entry.changes, 0);
    const std::optional<Ending> told = std::exchange(entry.ending, std::nullopt);
    // A look delayed by the budget cannot tell which of several changes were holdings, nor when.
    const bool at_once = answered_at - entry.changed_since <= kAtOnce;
    state.late = changes > 0 && !at_once;
    state.at = changes > 0 && at_once ? entry.changed_at : asked_at;
    state.changes = changes;
    if (changes > 0) state.changed_since = entry.changed_since;
    if (state.ttl_left) *state.ttl_left += answered_at - state.at;
    if (!is_free) return state;
    state.ended = told;
    if (!told && ran_out) state.ended = Ending::expired;
    if (ran_out && changes == 0) entry.expiry_looked_at = true;
    return state;
  }
  void settle(const std::string& key, Entry& entry, const Sighting& last) {
    entry.held = !last.holders.empty();
    if (entry.held) {
      entry.owner = hash_of(last.holders.front().owner);
      remember(key, entry);
      return;
    }
    entry.ends.reset();
    entry.owner = 0;
    // Keep an expired key until the message about it has come.
    if (!entry.queued && !entry.expiry_looked_at) forget(keys_.find(key));
  }
  /// When expire() should handle the key.
  static TimePoint due_at(const Entry& entry) {
    if (entry.held) return entry.ends ? *entry.ends + kAfterExpiry : TimePoint::max();
    // The message about the expiry comes in any case.
    return entry.expiry_looked_at ? TimePoint::max() : entry.changed_at + kOtherHalf;
  }
  void remember(const std::string& key, const Entry& entry) {
    if (due_at(entry) != TimePoint::max()) due_.push({due_at(entry), key});
    if (due_.size() <= 2 * keys_.size() + kFew) return;
    // Rebuild: entries of renewed or released keys would stay until their old end, maybe for days.
    std::vector<Due> all;
    for (const auto& [name, one] : keys_) {
      if (due_at(one) != TimePoint::max()) all.push_back({due_at(one), name});
    }
    due_ = decltype(due_)(std::greater<>(), std::move(all));
  }

  const std::size_t most_;
  const Way way_;
  Keys keys_;
  std::array<std::deque<Waiting>, kLines> lines_;
  unsigned turns_ = 0;
  struct Due {
    TimePoint at;
    std::string key;
    bool operator>(const Due& other) const { return at > other.at; }
  };
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  bool all_found_ = false;
  std::uint64_t first_looks_left_ = 0, missed_ = 0;
  std::vector<Sighting> ready_;
  /// Keys that were no locks, and the beginnings of the names of those that were locks and of those
  /// that were none; bounded.
  std::unordered_set<std::string> others_, stems_, other_stems_;
  std::unordered_set<std::string> companions_;  ///< kinds of keys that were part of a lock; bounded
  std::unordered_set<std::string> freed_;       ///< until all existing keys have been found
  std::string last_of_held_;                    ///< the last key that held_hashes() returned
};

}  // namespace lockbench::watch
