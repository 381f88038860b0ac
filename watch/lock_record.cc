#include "watch/lock_record.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;

/// TTLs are read a round trip later than they count from.
constexpr Duration kTtlError = 20ms;
/// A margin below this share of the TTL is thin.
constexpr int kThin = 10;
/// A lock that another client gets so soon after it expired was taken over.
constexpr Duration kTakenOverWithin = 1s;
/// SETNX and EXPIRE are two commands, but of one moment.
constexpr Duration kLeakAfter = 1s;
constexpr std::uint32_t kEnoughRenewals = 2;
constexpr std::size_t kMostParties = 1024;

/// Derives what happened from the record's state and the next one. Used once.
class Step {
 public:
  Step(LockRecord& record, Sighting sighting, const Judgement& judgement)
      : record_(record), next_(std::move(sighting)), judgement_(judgement) {}

  Happenings take() {
    next_.at = std::max(next_.at, record_.at);
    beginning_ = !record_.known || record_.epoch != judgement_.epoch;
    before_ = record_.at;
    read_parties();
    if (beginning_ && record_.known) forget_holdings();
    compare();
    take_waiters();
    settle();
    return std::move(found_);
  }

 private:
  /// Whether what this sighting shows first may have begun before it.
  bool begins_unseen() const {
    if (!beginning_) return false;
    if (judgement_.accuracy == Accuracy::sampled) return next_.first_look || record_.known;
    return next_.changes == 0 || next_.first_look || record_.known;
  }

  void read_parties() {
    if (next_.holders.size() > kMostParties) next_.holders.resize(kMostParties);
    for (const Party& party : next_.holders) {
      Holding holding{.owner = hash_of(party.owner, judgement_.salt),
                      .since = std::min(party.since.value_or(next_.at), next_.at),
                      .entries = static_cast<std::uint32_t>(std::min<std::uint64_t>(
                          party.entries, std::numeric_limits<std::uint32_t>::max())),
                      .shared = party.shared,
                      .began_unseen = !party.since && begins_unseen()};
      store_knows_since_.push_back(party.since.has_value());
      holders_.push_back(holding);
    }
  }

  /// After a blind period: what was held then has no end, and what is held has no beginning, unless
  /// the store tells that it began later.
  void forget_holdings() {
    std::vector<Holding> present;
    for (std::size_t i = 0; i < holders_.size(); ++i) {
      Holding& holding = holders_[i];
      if (store_knows_since_[i] && holding.since >= judgement_.sees_since) continue;
      for (const Holding& old : record_.holders) {
        if (holding.owner != old.owner || store_knows_since_[i]) continue;
        holding.since = old.since;
        holding.began_unseen = true;
      }
      present.push_back(holding);
    }
    record_.holders = std::move(present);
    record_.waiters.clear();
    record_.expired_at.reset();
    record_.changes = record_.loose_changes = 0;
    reset_holding();
    record_.extended = next_.at;
    record_.fence = next_.fence;
  }

  /// Whether it is the same holding, as far as owner, beginning and fence tell.
  bool continues(const Holding& old, std::size_t index) const {
    const Holding& holding = holders_[index];
    if (holding.owner != old.owner) return false;
    if (store_knows_since_[index] && !old.began_unseen && holding.since > old.since + kClockError) {
      return false;
    }
    return !(record_.fence && next_.fence && *next_.fence != *record_.fence);
  }

  void compare() {
    std::vector<Holding> ended;
    std::vector<std::size_t> begun;
    std::vector<bool> kept(holders_.size(), false);
    for (const Holding& old : record_.holders) {
      std::size_t same = 0;
      while (same < holders_.size() && (kept[same] || !continues(old, same))) ++same;
      if (same == holders_.size()) {
        ended.push_back(old);
        continue;
      }
      kept[same] = true;
      entered_ = entered_ || holders_[same].entries != old.entries;
      const bool shared = holders_[same].shared;
      const std::uint32_t entries = holders_[same].entries;
      holders_[same] = old;
      holders_[same].shared = shared;
      holders_[same].entries = entries;
    }
    for (std::size_t i = 0; i < holders_.size(); ++i) {
      if (!kept[i]) begun.push_back(i);
    }
    const bool goes_on = begun.size() < holders_.size();
    count_changes(!ended.empty(), !begun.empty());
    for (const Holding& one : ended) end(one, !begun.empty());
    if (!goes_on && (!ended.empty() || !begun.empty())) reset_holding();
    for (const std::size_t index : begun) begin(holders_[index], index);
    if (goes_on && ended.empty() && begun.empty()) go_on();
  }

  /// On sources that coalesce, the numbers of changes tell of holdings between two looks.
  void count_changes(bool ends, bool begins) {
    if (judgement_.accuracy != Accuracy::at_least || (beginning_ && record_.known)) return;
    const std::uint64_t per_holding = std::max<std::uint64_t>(judgement_.changes_per_holding, 2);
    const std::uint64_t changes = next_.changes;
    const bool was_held = !record_.holders.empty(), is_held = !holders_.empty();
    const std::uint64_t expected = (ends ? 1 : 0) + (begins ? 1 : 0);
    std::uint64_t extra = changes > expected ? changes - expected : 0;
    if (was_held && is_held && !ends && !begins) {
      record_.changes += static_cast<std::uint32_t>(std::min<std::uint64_t>(changes, 1'000'000));
      return;
    }
    if (!was_held) extra += record_.loose_changes;
    found_.unseen_holdings = extra / per_holding;
    found_.coalesced = found_.unseen_holdings > 0 || (ends && begins);
    if (ends && !begins && !is_held) {
      if (changes > 0 && record_.changes > 0 && found_.unseen_holdings == 0) {
        found_.changes_of_holding = record_.changes + changes;
      }
      record_.changes = 0;
    } else if (begins) {
      record_.changes = changes > 0 ? 1 : 0;
    }
    record_.loose_changes =
        is_held || was_held ? 0 : static_cast<std::uint32_t>(extra % per_holding);
  }

  /// How the holding ended, as the store or else the TTL tells.
  Moment::Kind kind_of_end(const Holding& holding, bool others_begin) const {
    if (next_.ended) {
      switch (*next_.ended) {
        case Ending::released:
          return Moment::Kind::released;
        case Ending::expired:
          return Moment::Kind::expired;
        case Ending::session_lost:
          return Moment::Kind::session_lost;
      }
    }
    if (record_.expiry && next_.at >= *record_.expiry - kUndecidedWithin) {
      // It may have been released at any time since the look before.
      const bool looked_late =
          judgement_.accuracy != Accuracy::sampled || before_ >= *record_.expiry - kUndecidedWithin;
      const bool over = next_.at >= *record_.expiry - kClockError;
      return over && looked_late ? Moment::Kind::expired : Moment::Kind::undecided;
    }
    const bool one_change = judgement_.accuracy == Accuracy::exact && next_.changes <= 1;
    // An owner that could not be looked at in time has no name.
    const bool both_named = holding.owner != hash_of({}, judgement_.salt) &&
                            std::none_of(next_.holders.begin(), next_.holders.end(),
                                         [](const Party& party) { return party.owner.empty(); });
    // Where each contender has a key of its own, nobody can write over the holder's.
    const bool one_key = next_.shape != Shape::etcd_queue;
    const bool changed_hands =
        others_begin && one_change && one_key && both_named && !holding.shared;
    return changed_hands ? Moment::Kind::owner_changed : Moment::Kind::released;
  }

  void end(const Holding& holding, bool others_begin) {
    Happening event{
        .kind = kind_of_end(holding, others_begin), .owner = holding.owner, .at = next_.at};
    if (event.kind == Moment::Kind::expired) {
      // Lost when the TTL ran out, however late that was seen.
      if (record_.expiry) event.at = std::clamp(*record_.expiry, holding.since, next_.at);
      event.was_renewed = record_.renewals >= kEnoughRenewals;
      record_.expired_at = event.at;
      record_.expired_owner = holding.owner;
    }
    if (!holding.began_unseen) event.lasted = event.at - holding.since;
    if (event.kind == Moment::Kind::released) take_margin(event);
    event.leaked = record_.no_ttl && !record_.had_ttl && has_usually_ttl(record_.shape);
    found_.list.push_back(event);
  }

  void take_margin(Happening& event) const {
    if (!record_.expiry) return;
    event.margin = std::max(*record_.expiry - next_.at, Duration::zero());
    event.thin = *event.margin * kThin < record_.ttl;
  }

  void reset_holding() {
    record_.expiry.reset();
    record_.had_ttl = false;
    record_.renewals = 0;
    record_.renewal_interval = {};
  }

  void begin(const Holding& holding, std::size_t index) {
    const bool seen =
        store_knows_since_[index] ? holding.since >= judgement_.sees_since : !holding.began_unseen;
    Happening event{.kind = Moment::Kind::granted,
                    .owner = holding.owner,
                    .at = holding.since,
                    .counted = seen,
                    .shared = holding.shared,
                    .ttl = next_.ttl_left};
    const auto waiter = std::find_if(record_.waiters.begin(), record_.waiters.end(),
                                     [&](const Waiter& one) { return one.owner == holding.owner; });
    if (waiter != record_.waiters.end() && !waiter->began_unseen) {
      event.waited = std::max(holding.since - waiter->since, Duration::zero());
    }
    event.took_over = record_.expired_at && record_.expired_owner != holding.owner &&
                      holding.since - *record_.expired_at <= kTakenOverWithin;
    record_.expired_at.reset();
    record_.extended = holding.since;
    found_.list.push_back(event);
  }

  /// The same holders: at most its TTL has changed.
  void go_on() {
    if (!next_.ttl_left || !record_.expiry || entered_) {
      if (entered_) record_.extended = next_.at;
      return;
    }
    const TimePoint expiry = next_.at + *next_.ttl_left;
    if (expiry <= *record_.expiry + kTtlError) return;
    Happening event{.kind = Moment::Kind::renewed, .owner = holders_.front().owner, .at = next_.at};
    take_margin(event);
    const bool known = !holders_.front().began_unseen || record_.renewals > 0;
    if (known)
      record_.renewal_interval = std::max(record_.renewal_interval, next_.at - record_.extended);
    ++record_.renewals;
    record_.extended = next_.at;
    found_.list.push_back(event);
  }

  void take_waiters() {
    if (next_.waiting) {
      std::vector<Waiter> waiters;
      for (const Party& party : *next_.waiting) {
        if (waiters.size() == kMostParties) break;
        const std::uint64_t owner = hash_of(party.owner, judgement_.salt);
        const auto old = std::find_if(record_.waiters.begin(), record_.waiters.end(),
                                      [&](const Waiter& one) { return one.owner == owner; });
        Waiter waiter{owner, std::min(party.since.value_or(next_.at), next_.at),
                      !party.since && begins_unseen()};
        if (old != record_.waiters.end() && !party.since) waiter = *old;
        waiters.push_back(waiter);
      }
      record_.waiters = std::move(waiters);
    }
    const std::uint64_t listed = next_.waiting ? next_.waiting->size() : 0;
    record_.waiting = std::max(listed, next_.waiters.value_or(0));
  }

  void settle() {
    record_.holders = std::move(holders_);
    record_.shape = next_.shape == Shape::unknown ? record_.shape : next_.shape;
    record_.epoch = judgement_.epoch;
    record_.known = true;
    record_.at = next_.at;
    if (next_.fence) record_.fence = next_.fence;
    if (record_.holders.empty()) {
      reset_holding();
      record_.no_ttl = false;
      return;
    }
    record_.no_ttl = next_.no_ttl;
    if (next_.ttl_left) {
      const TimePoint expiry = next_.at + *next_.ttl_left;
      // Renewed; or the TTL was set by a second command, after one with a longer TTL.
      const bool set_anew = !record_.expiry || expiry > *record_.expiry + kTtlError ||
                            expiry < *record_.expiry - std::max(kTtlError, record_.ttl / kThin);
      if (set_anew) record_.ttl = *next_.ttl_left;
      record_.expiry = expiry;
      record_.had_ttl = true;
    } else if (next_.no_ttl) {
      record_.expiry.reset();
    }
  }

  LockRecord& record_;
  Sighting next_;
  const Judgement& judgement_;
  Happenings found_;
  std::vector<Holding> holders_;
  std::vector<bool> store_knows_since_;
  TimePoint before_{};  ///< the sighting before
  bool beginning_ = false, entered_ = false;
};

}  // namespace

bool has_usually_ttl(Shape shape) {
  switch (shape) {
    case Shape::token:
    case Shape::fenced_token:
    case Shape::redisson_hash:
    case Shape::etcd_queue:
    case Shape::etcd_key:
    case Shape::table_row:
    case Shape::sequence_nodes:  // that of a session: no_ttl means nodes that are not ephemeral
      return true;
    case Shape::unknown:
    case Shape::ephemeral_node:
    case Shape::advisory:
    case Shape::row:
      break;
  }
  return false;
}

bool LockRecord::renewal_stopped(TimePoint now) const {
  if (holders.empty() || renewals < kEnoughRenewals || !expiry) return false;
  return now - extended > renewal_interval + renewal_interval / 2 + kUndecidedWithin;
}

bool LockRecord::is_leak(TimePoint now) const {
  return !holders.empty() && no_ttl && !had_ttl && has_usually_ttl(shape) &&
         now - holders.front().since >= kLeakAfter;
}

Happenings derive(LockRecord& record, Sighting sighting, const Judgement& judgement) {
  return Step(record, std::move(sighting), judgement).take();
}

}  // namespace lockbench::watch
