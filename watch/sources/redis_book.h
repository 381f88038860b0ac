#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "watch/sources/lock_state.h"
#include "watch/sources/redis_lock.h"

namespace lockbench::watch {

/// The keys that a watch of Redis must remember: those that changed and wait for a look, and those
/// that are held, with their end. Free keys are forgotten after the look. Plain data, for one
/// thread.
class RedisBook {
 public:
  /// How the server reports changes.
  enum class Way {
    scan,           ///< it does not: look at keys periodically
    tracking,       ///< it reports that a key has changed
    notifications,  ///< it reports each change and its kind: a look only adds holder and end
  };
  RedisBook(std::size_t most_keys, Way way) : most_(most_keys), way_(way) {}

  /// Notes a change of unknown kind. False: there is no room for the key.
  bool changed(const std::string& key, TimePoint at) {
    Entry* const entry = entry_of(key);
    if (entry == nullptr) return false;
    if (!std::exchange(entry->expiry_looked_at, false)) ++entry->changes;
    entry->changed_at = at;
    enqueue(key, *entry);
    return true;
  }
  /// Notes a change of known kind.
  bool changed(const std::string& key, KeyEvent event, TimePoint at) {
    if (event == KeyEvent::none) return true;
    Entry* const entry = entry_of(key);
    if (entry == nullptr) return false;
    if (event == KeyEvent::expired) entry->ending = Ending::expired;
    if (event == KeyEvent::released) entry->ending = Ending::released;
    if (way_ != Way::notifications) {
      // An invalidation message reports the change itself.
      if (!entry->held && !entry->queued && !entry->expiry_looked_at) keys_.erase(key);
      return true;
    }
    if (entry->events.size() >= kMostEvents) make_room(key, *entry);
    entry->events.push_back({event, at});
    enqueue(key, *entry);
    return true;
  }
  /// Schedules a look at the key, if there is room, although no change is known.
  void look_at(const std::string& key) {
    if (Entry* const entry = entry_of(key)) enqueue(key, *entry);
  }
  /// Notes that every held key may have changed.
  void all_changed(TimePoint at) {
    for (auto& [key, entry] : keys_) {
      if (!entry.held) continue;
      ++entry.changes;
      entry.changed_at = at;
      enqueue(key, entry);
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
        enqueue(due.key, found->second);
      } else if (!found->second.queued) {
        keys_.erase(found);
      }
    }
  }

  /// A key to look at, and as which type to read it.
  struct Turn {
    std::string key;
    KeyKind kind = KeyKind::unknown;
  };
  std::optional<Turn> next() {
    while (!waiting_.empty()) {
      std::string key = std::move(waiting_.front());
      waiting_.pop_front();
      const auto found = keys_.find(key);
      if (found == keys_.end() || !found->second.queued) continue;
      found->second.queued = false;
      return Turn{.key = std::move(key), .kind = found->second.kind};
    }
    return std::nullopt;
  }
  /// Puts the key from next() back to the front.
  void put_back(const Turn& turn) {
    const auto found = keys_.find(turn.key);
    if (found == keys_.end() || std::exchange(found->second.queued, true)) return;
    waiting_.push_front(turn.key);
  }
  bool nothing_waits() const { return waiting_.empty(); }

  /// Combines the result of a look with the key's events into sightings, in order. `asked_at` and
  /// `answered_at` bound the moment of the state. No `state`: the key is not, or no longer, a lock.
  std::vector<Sighting> looked(const std::string& key, KeyKind kind, std::optional<Sighting> state,
                               TimePoint asked_at, TimePoint answered_at) {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return {};
    Entry& entry = found->second;
    entry.kind = kind;
    if (!state) {
      // The lock was overwritten by another type of value.
      std::vector<Sighting> seen;
      if (entry.held) seen.push_back(freed(key, asked_at, entry.ending));
      keys_.erase(found);
      return seen;
    }
    // Latest possible end, as the exact moment of the state is unknown.
    if (state->ttl_left) entry.ends = answered_at + *state->ttl_left + std::chrono::milliseconds(1);
    if (!state->ttl_left && !state->holders.empty()) entry.ends.reset();
    std::vector<Sighting> seen;
    if (way_ == Way::notifications && !entry.events.empty()) {
      seen = explained(key, entry, *std::move(state), answered_at);
    } else {
      auto now = judged(entry, *std::move(state), asked_at, answered_at);
      if (now) seen.push_back(*std::move(now));
    }
    if (!seen.empty()) {
      settle(key, entry, seen.back());
    } else if (!entry.held && !entry.queued) {
      if (entry.changes == 0) {
        keys_.erase(found);
      } else {
        remember(key, entry);
      }
    }
    return seen;
  }
  /// Sightings from the events of keys that could not be looked at in time.
  std::vector<Sighting> take_ready() { return std::exchange(ready_, {}); }
  /// Changes merged with others since the last call.
  std::uint64_t take_coalesced() { return std::exchange(coalesced_, 0); }

  bool is_held(const std::string& key) const {
    const auto found = keys_.find(key);
    return found != keys_.end() && found->second.held;
  }
  /// Up to `most` held keys of this kind; each call continues after the previous one.
  std::vector<std::string> held_keys(KeyKind kind, std::size_t most) {
    std::vector<std::string> held;
    auto place = keys_.find(last_of_held_);
    for (std::size_t i = 0; i < keys_.size() && held.size() < most; ++i) {
      if (place == keys_.end() || ++place == keys_.end()) place = keys_.begin();
      if (place->second.held && place->second.kind == kind) held.push_back(place->first);
    }
    if (!held.empty()) last_of_held_ = held.back();
    return held;
  }
  /// When expire() next has something to do; TimePoint::max(): nothing is scheduled.
  TimePoint next_expiry() const { return due_.empty() ? TimePoint::max() : due_.top().at; }
  std::size_t size() const { return keys_.size(); }

 private:
  /// Events kept for a key that waits for a look for want of budget.
  static constexpr std::size_t kMostEvents = 64;
  /// Redis deletes an expired key no later than when it is read, so look a little after its end.
  static constexpr Duration kAfterExpiry = std::chrono::milliseconds(5);
  /// How long to wait for the message about the release of a short holding whose grant came alone.
  static constexpr Duration kOtherHalf = std::chrono::seconds(1);

  static std::size_t hash_of(const std::string& owner) { return std::hash<std::string>{}(owner); }

  static Sighting freed(const std::string& key, TimePoint at, std::optional<Ending> ended) {
    Sighting seen = free_lock(key, at);
    seen.ended = ended;
    seen.changes = 1;
    return seen;
  }

  struct Event {
    KeyEvent what;
    TimePoint at;
  };
  struct Entry {
    KeyKind kind = KeyKind::unknown;
    bool held = false, queued = false;
    std::size_t owner = 0;  ///< a hash
    std::uint64_t changes = 0;
    TimePoint changed_at{};
    std::optional<TimePoint> ends{};
    std::optional<Ending> ending{};  ///< as reported by an event
    std::vector<Event> events{};     ///< only with Way::notifications
    bool expiry_looked_at = false;   ///< the late message about it is not another change
  };

  Entry* entry_of(const std::string& key) {
    const auto found = keys_.find(key);
    if (found != keys_.end()) return &found->second;
    return keys_.size() < most_ ? &keys_[key] : nullptr;
  }
  void enqueue(const std::string& key, Entry& entry) {
    if (std::exchange(entry.queued, true)) return;
    waiting_.push_back(key);
  }
  /// Index after the last event that ended a holding.
  static std::size_t end_of_last(const std::vector<Event>& events) {
    for (std::size_t i = events.size(); i > 0; --i) {
      const KeyEvent what = events[i - 1].what;
      if (what == KeyEvent::expired || what == KeyEvent::released) return i;
    }
    return 0;
  }
  /// Sightings from events alone. `held`: state before, and on return after them.
  static std::vector<Sighting> replayed(const std::string& key, std::span<const Event> events,
                                        Shape shape, bool& held) {
    std::vector<Sighting> seen;
    for (const Event& event : events) {
      const bool expired = event.what == KeyEvent::expired;
      const bool ends = expired || event.what == KeyEvent::released;
      if (std::exchange(held, !ends) == !ends) continue;
      std::optional<Ending> ended;
      if (ends) ended = expired ? Ending::expired : Ending::released;
      seen.push_back(freed(key, event.at, ended));
      seen.back().shape = shape;
      // The holder at that time is unknown.
      if (!ends) seen.back().holders.push_back({.owner = {}});
    }
    return seen;
  }
  /// Sightings from the key's events and its state.
  std::vector<Sighting> explained(const std::string& key, Entry& entry, Sighting state,
                                  TimePoint answered_at) {
    const std::vector<Event> events = std::exchange(entry.events, {});
    const std::size_t past = end_of_last(events);
    bool held = entry.held;
    std::vector<Sighting> seen = replayed(key, std::span(events).first(past), state.shape, held);
    if (past == events.size()) return seen;
    // The key has been held since the first event after that.
    state.at = events[past].at;
    state.changes = 1;
    if (state.holders.empty()) {
      // The key has been freed since; an event will report it.
      if (held) return seen;
      state.holders.push_back({.owner = {}});
    } else if (state.ttl_left) {
      *state.ttl_left += answered_at - state.at;
    }
    seen.push_back(std::move(state));
    return seen;
  }
  /// Turns events that wait for a look into sightings without one.
  void make_room(const std::string& key, Entry& entry) {
    const std::size_t past = end_of_last(entry.events);
    if (past > 0) {
      auto seen = replayed(key, std::span(entry.events).first(past), Shape::token, entry.held);
      ready_.insert(ready_.end(), std::make_move_iterator(seen.begin()),
                    std::make_move_iterator(seen.end()));
      if (!entry.held) entry.ends.reset();
    }
    // Drop the events of ended holdings, or else the oldest: the others are renewals, of which the
    // last one counts.
    const auto from = static_cast<std::ptrdiff_t>(std::max(past, std::size_t{1}));
    entry.events.erase(entry.events.begin(), entry.events.begin() + from);
  }
  /// The sighting from the key's state and its number of changes; nothing if it is too early to
  /// tell.
  std::optional<Sighting> judged(Entry& entry, Sighting state, TimePoint asked_at,
                                 TimePoint answered_at) {
    constexpr Duration kAtOnce = std::chrono::milliseconds(20);
    const bool is_free = state.holders.empty();
    const bool holder_is_gone =
        entry.held && (is_free || hash_of(state.holders.front().owner) != entry.owner);
    // After the end nobody else can delete the key, and a renewal would have been another change.
    const TimePoint noticed_at = entry.changes > 0 ? entry.changed_at : asked_at;
    const bool ran_out =
        entry.held && is_free && entry.changes <= 1 && entry.ends && noticed_at >= *entry.ends;
    // Wait for the message: it gives the time and the number of changes.
    const bool message_is_late =
        way_ != Way::scan && entry.changes == 0 && holder_is_gone && !ran_out;
    const bool release_is_untold =
        way_ == Way::tracking && entry.changes == 1 && is_free && !entry.held;
    if (message_is_late || release_is_untold) return std::nullopt;

    const std::uint64_t changes = std::exchange(entry.changes, 0);
    const std::optional<Ending> told = std::exchange(entry.ending, std::nullopt);
    // A look right after the message shows the effect of that change. A look delayed by the budget
    // cannot tell which of several changes were holdings.
    const bool at_once = changes > 0 && answered_at - entry.changed_at <= kAtOnce;
    if (!at_once && changes > 2) coalesced_ += changes - 2;
    state.at = at_once ? entry.changed_at : asked_at;
    state.changes = changes;
    if (state.ttl_left) *state.ttl_left += answered_at - state.at;
    if (!is_free) return state;
    state.ended = told;
    if (!told && ran_out) state.ended = Ending::expired;
    if (ran_out && changes == 0 && way_ == Way::tracking) entry.expiry_looked_at = true;
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
    if (!entry.queued && !entry.expiry_looked_at) keys_.erase(key);
  }
  /// When expire() should handle the key.
  static TimePoint due_at(const Entry& entry) {
    if (entry.held) return entry.ends ? *entry.ends + kAfterExpiry : TimePoint::max();
    // The message about the expiry comes in any case.
    return entry.expiry_looked_at ? TimePoint::max() : entry.changed_at + kOtherHalf;
  }
  void remember(const std::string& key, const Entry& entry) {
    constexpr std::size_t kFew = 64;
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
  std::unordered_map<std::string, Entry> keys_;
  std::deque<std::string> waiting_;
  struct Due {
    TimePoint at;
    std::string key;
    bool operator>(const Due& other) const { return at > other.at; }
  };
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::uint64_t coalesced_ = 0;
  std::vector<Sighting> ready_;
  std::string last_of_held_;  ///< the last key that held_keys() returned
};

}  // namespace lockbench::watch
