#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "watch/sighting.h"
#include "watch/sources/redis_lock.h"

namespace lockbench::watch {

/// What a watch of Redis must remember of its keys: which have changed and were not looked at yet,
/// which are held, and until when. Keys that are free and looked at are forgotten. Plain data, for
/// one thread.
class RedisBook {
 public:
  /// How the server tells of changes.
  enum class Way {
    scan,           ///< not at all: keys are looked at from time to time
    tracking,       ///< that a key has changed
    notifications,  ///< each change and what it was: a look only adds who holds it, and until when
  };
  RedisBook(std::size_t most_keys, Way way) : most_(most_keys), way_(way) {}

  /// The key was changed, by an event that says no more. False: there is no room for the key.
  bool changed(const std::string& key, TimePoint at);
  /// The same, by one that says how.
  bool changed(const std::string& key, KeyEvent event, TimePoint at);
  /// The key is to be looked at, if there is room for it, though nothing is known to have changed.
  void look_at(const std::string& key);
  /// Everything that is held may have changed.
  void all_changed(TimePoint at);
  /// What should have expired by now is to be looked at; what came to nothing is forgotten.
  void expire(TimePoint now);

  /// The key to look at next, and how it is to be asked; nothing: none is waiting.
  struct Turn {
    std::string key;
    KeyKind kind = KeyKind::unknown;
    bool held = false;
  };
  std::optional<Turn> next();
  /// The key that next() named stays the first.
  void put_back(const Turn& turn);
  bool nothing_waits() const { return waiting_.empty(); }

  /// What the key's answers mean together with its events: the sightings that follow from them, in
  /// order. `asked_at` and `answered_at` bound the moment of the state. Nothing in `state`: it is
  /// no lock, or none any more.
  std::vector<Sighting> looked(const std::string& key, KeyKind kind, std::optional<Sighting> state,
                               TimePoint asked_at, TimePoint answered_at);
  /// Sightings that follow from events whose keys could not be looked at in time.
  std::vector<Sighting> take_ready() { return std::exchange(ready_, {}); }
  /// Changes that were seen only together with others, since the last call.
  std::uint64_t take_coalesced() { return std::exchange(coalesced_, 0); }

  bool is_held(const std::string& key) const;
  /// Of this kind, at most so many; each time the next ones.
  std::vector<std::string> held_keys(KeyKind kind, std::size_t most);
  /// When expire() has something to do; TimePoint::max(): never, as far as is known.
  TimePoint next_expiry() const;
  std::size_t size() const { return keys_.size(); }

 private:
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
    std::optional<Ending> ending{};  ///< as an event said
    std::vector<Event> events{};     ///< only if they are exact
    bool expiry_looked_at = false;   ///< so that the message about it is none of a change
  };

  Entry* entry_of(const std::string& key);
  void enqueue(const std::string& key, Entry& entry);
  /// Behind the last event that ended a holding.
  static std::size_t end_of_last(const std::vector<Event>& events);
  /// What events alone tell. `held`: before and after them.
  static std::vector<Sighting> replayed(const std::string& key, std::span<const Event> events,
                                        Shape shape, bool& held);
  /// What the key's events tell together with its state.
  std::vector<Sighting> explained(const std::string& key, Entry& entry, Sighting state,
                                  TimePoint answered_at);
  /// Of events that wait for a look: what they tell without one.
  void make_room(const std::string& key, Entry& entry);
  /// What the key's state tells together with the number of its changes; nothing: not yet known.
  std::optional<Sighting> judged(Entry& entry, Sighting state, TimePoint asked_at,
                                 TimePoint answered_at);
  void settle(const std::string& key, Entry& entry, const Sighting& last);
  /// When expire() is to see to the key.
  static TimePoint due_at(const Entry& entry);
  void remember(const std::string& key, const Entry& entry);

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
  std::string last_of_held_;  ///< that held_keys() named
};

}  // namespace lockbench::watch
