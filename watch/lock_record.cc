#include "watch/lock_record.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;

/// The watcher reads a TTL up to a round trip after the store computed it.
constexpr Duration kTtlError = 20ms;
/// A margin of less than a tenth of the TTL is thin.
constexpr int kThin = 10;
/// If another client gets the lock this soon after it expired, the lock was taken over.
constexpr Duration kTakenOverWithin = 1s;
/// Grace for clients that set the TTL with EXPIRE right after SETNX.
constexpr Duration kLeakAfter = 1s;
constexpr std::uint32_t kEnoughRenewals = 2;
constexpr std::size_t kMostParties = 1024;

/// The owner for people. Only the beginning of a token: it may be all that a release needs.
std::string shown_owner(const Party& party) {
  constexpr std::size_t kLongest = 12;
  if (!party.about.empty()) return party.about;
  return party.owner.size() <= kLongest ? party.owner : party.owner.substr(0, kLongest) + "...";
}

/// The step from one sighting of a lock to the next: `record_` is the old state, `next_` the new
/// one, `found_` the events in between. Used once; updates the record.
class Step {
 public:
  Step(LockRecord& record, Sighting sighting, const Judgement& judgement)
      : record_(record),
        next_(std::move(sighting)),
        judgement_(judgement),
        after_gap_(record.known && record.epoch != judgement.epoch) {
    next_.at = std::max(next_.at, record.at);
  }

  Happenings take() {
    if (next_.only_waiters) {
      take_waiters();
      return {};
    }
    read_holders();
    if (after_gap_) forget_holdings();
    const std::vector<Claim> ended = match();
    const auto is_new = [](const Present& one) { return one.is_new; };
    const bool some_ended = !ended.empty(), some_began = std::ranges::any_of(holders_, is_new);
    const bool some_go_on = !std::ranges::all_of(holders_, is_new);
    count_unseen(some_ended, some_began);
    for (const Claim& one : ended) end(one, some_began);
    if (named_) name(*named_);
    if (!some_go_on && (some_ended || some_began)) reset_holding();
    for (const Present& one : holders_) {
      if (one.is_new) begin(one);
    }
    if (some_go_on && !some_ended && !some_began && !named_) extend();
    found_.unexplained += kGrantAndEnd * next_.missed_holdings;
    take_waiters();
    settle();
    return std::move(found_);
  }

 private:
  /// A holder in the next sighting.
  struct Present {
    Claim holding;
    bool dated = false;  ///< the store tells since when
    bool is_new = true;  ///< it continues no holding of the record
  };

  /// Whether holdings that this sighting shows for the first time may have begun before it.
  bool begins_unseen() const {
    const bool told_by_change = next_.changes > 0 && !next_.first_look;
    if (after_gap_) return !told_by_change;
    if (record_.known) return false;
    return next_.first_look || (judgement_.accuracy != Accuracy::sampled && !told_by_change);
  }

  /// The party's claim, which begins now unless the store tells an earlier time.
  Claim claim_of(const Party& party) const {
    constexpr std::uint64_t kMostEntries = std::numeric_limits<std::uint32_t>::max();
    return {.owner = party.owner.empty() ? kUnnamed : hash_of(party.owner, judgement_.salt),
            .since = std::min(party.since.value_or(next_.at), next_.at),
            .entries = static_cast<std::uint32_t>(std::min(party.entries, kMostEntries)),
            .shared = party.shared,
            .began_unseen = !party.since && (next_.late || begins_unseen()),
            .shown = judgement_.shows_owners ? shown_owner(party) : std::string()};
  }

  void read_holders() {
    if (next_.holders.size() > kMostParties) next_.holders.resize(kMostParties);
    for (const Party& party : next_.holders) {
      holders_.push_back({.holding = claim_of(party), .dated = party.since.has_value()});
    }
  }

  /// After a blind period, old holdings get no end and present ones no beginning, unless they are
  /// seen to have begun after it.
  void forget_holdings() {
    std::vector<Claim> held_before;
    for (Present& one : holders_) {
      const Claim& holding = one.holding;
      if (one.dated ? holding.since >= judgement_.sees_since : !holding.began_unseen) continue;
      // Without a date it may be another holding of the same owner: it is as old as was seen.
      held_before.push_back(holding);
    }
    record_.holders = std::move(held_before);
    record_.waiters.clear();
    record_.waiting = 0;
    record_.expired_at.reset();
    record_.changes = record_.loose_changes = 0;
    reset_holding();
    record_.extended = next_.at;
    record_.fence = next_.fence;
  }

  /// Whether both are the same holding, judged by owner, beginning and fence.
  bool continues(const Claim& old, const Present& now) const {
    if (old.owner == kUnnamed) return record_.holders.size() == 1;
    if (now.holding.owner != old.owner) return false;
    const bool later = now.dated && now.holding.since > old.since + kClockError;
    if (later && !old.began_unseen) return false;
    return !(record_.fence && next_.fence && *next_.fence != *record_.fence);
  }

  /// Finds the record's holdings among the present ones; returns those that have ended.
  std::vector<Claim> match() {
    std::vector<Claim> ended;
    for (const Claim& old : record_.holders) {
      const auto same = std::ranges::find_if(
          holders_, [&](const Present& one) { return one.is_new && continues(old, one); });
      if (same == holders_.end()) {
        ended.push_back(old);
        continue;
      }
      same->is_new = false;
      if (old.owner == kUnnamed && same->holding.owner != kUnnamed) named_ = same->holding.owner;
      same->holding.since = old.since;
      same->holding.began_unseen = old.began_unseen;
      reentered_ = reentered_ || same->holding.entries != old.entries;
    }
    return ended;
  }

  /// On sources that coalesce, the number of changes shows holdings between two looks. A seen end
  /// accounts for one change and a seen beginning for another; each further `changes_per_holding`
  /// of them are one unseen holding: as these are the most that a holding has, never too many.
  void count_unseen(bool ends, bool begins) {
    constexpr std::uint64_t kMostCounted = 1'000'000;
    if (judgement_.accuracy != Accuracy::at_least || after_gap_) return;
    const std::uint64_t changes = next_.changes;
    const bool was_held = !record_.holders.empty(), is_held = !holders_.empty();
    if (was_held && is_held && !ends && !begins) {  // the same holding, renewed perhaps
      record_.changes += static_cast<std::uint32_t>(std::min(changes, kMostCounted));
      return;
    }
    const std::uint64_t explained = (ends ? 1 : 0) + (begins ? 1 : 0);
    std::uint64_t further = changes - std::min(changes, explained);
    if (!was_held) further += record_.loose_changes;
    const std::uint64_t per_holding = std::max(judgement_.changes_per_holding, kGrantAndEnd);
    if (judgement_.changes_per_holding > 0) found_.unseen_holdings = further / per_holding;
    // A free lock that was changed and is free again was held in between.
    const bool passed = !was_held && !is_held && further >= kGrantAndEnd;
    if (passed && found_.unseen_holdings == 0) found_.unseen_holdings = 1;
    if (found_.unseen_holdings > 0 && is_too_short_to_expire()) {
      found_.unseen_releases = found_.unseen_holdings;
    }
    found_.unexplained = further - std::min(further, found_.unseen_holdings * per_holding);
    found_.coalesced = found_.unseen_holdings > 0 || (ends && begins) || next_.late;
    if (begins) {
      record_.changes = changes > 0 ? 1 : 0;  // the grant
    } else if (ends && !is_held) {
      const bool seen_whole =
          record_.changes > 0 && changes > 0 && found_.unseen_holdings == 0 && !next_.late;
      if (seen_whole) found_.changes_of_holding = record_.changes + changes;
      record_.changes = 0;
    }
    const bool stayed_free = !was_held && !is_held;
    record_.loose_changes =
        stayed_free && !passed ? static_cast<std::uint32_t>(further % per_holding) : 0;
  }

  /// Whether no lock of the family can have been granted and expired during these changes.
  bool is_too_short_to_expire() const {
    const TimePoint since = next_.changed_since.value_or(record_.at);
    return judgement_.shortest_ttl && next_.at - since + kTtlError < *judgement_.shortest_ttl;
  }

  /// How the holding ended: as the store says, else judged by the TTL.
  Happening::Kind kind_of_end(const Claim& holding, bool others_begin) const {
    if (next_.ended == Ending::released) return Happening::Kind::released;
    if (next_.ended == Ending::expired) return kind_of_expiry();
    if (next_.ended == Ending::session_lost) return Happening::Kind::session_lost;
    if (record_.expiry && next_.at >= *record_.expiry - kUndecidedWithin) {
      // A lock that was sampled, or looked at late, may have been released at any time since the
      // previous look.
      const bool told = judgement_.accuracy != Accuracy::sampled && !next_.late;
      const bool looked_near = told || record_.at >= *record_.expiry - kUndecidedWithin;
      const bool over = next_.at >= *record_.expiry - kClockError;
      const bool expired = (over && looked_near) || record_.given_back;
      return expired ? kind_of_expiry() : Happening::Kind::undecided;
    }
    if (!others_begin || !was_written_over(holding)) return Happening::Kind::released;
    return judgement_.accuracy == Accuracy::exact ? Happening::Kind::owner_changed
                                                  : Happening::Kind::replaced;
  }

  Happening::Kind kind_of_expiry() const {
    if (record_.given_back) return Happening::Kind::released;
    return judgement_.never_released ? Happening::Kind::lapsed : Happening::Kind::expired;
  }

  /// Whether a single change replaced the holder's name by another client's.
  bool was_written_over(const Claim& holding) const {
    // If changes may come as one, it may also have been a release and a grant.
    const bool one_change = judgement_.accuracy != Accuracy::sampled && next_.changes <= 1;
    const bool one_key = !facts_of(next_.shape).key_for_each;
    const bool both_named =
        holding.owner != kUnnamed &&
        std::ranges::none_of(next_.holders, [](const Party& party) { return party.owner.empty(); });
    return one_change && one_key && both_named && !holding.shared;
  }

  void end(const Claim& holding, bool others_begin) {
    Happening event{
        .kind = kind_of_end(holding, others_begin), .owner = holding.owner, .at = next_.at};
    record_.expired_at.reset();
    // The lock was lost when the TTL ran out, even if that was seen later.
    const bool expired =
        event.kind == Happening::Kind::expired || event.kind == Happening::Kind::lapsed;
    if ((expired || record_.given_back) && record_.expiry) {
      event.at = std::clamp(*record_.expiry, holding.since, next_.at);
    }
    // A family that only looks as if it was never released may be taken over.
    if (expired && !record_.never_released) {
      event.was_renewed = record_.renewals >= kEnoughRenewals;
      if (holding.owner != kUnnamed) record_.expired_at = event.at;
      record_.expired_owner = holding.owner;
    }
    if (!holding.began_unseen && !next_.late) event.lasted = event.at - holding.since;
    if (event.kind == Happening::Kind::released && !record_.given_back) take_margin(event);
    event.leaked = record_.no_ttl && !record_.had_ttl && facts_of(record_.shape).has_ttl;
    found_.list.push_back(event);
  }

  void take_margin(Happening& event) const {
    if (!record_.expiry || next_.late) return;
    event.margin = std::max(*record_.expiry - next_.at, Duration::zero());
    event.thin = *event.margin * kThin < record_.ttl;
  }

  void reset_holding() {
    record_.expiry.reset();
    record_.had_ttl = false;
    record_.renewals = 0;
    record_.renewal_interval = {};
    record_.given_back = record_.long_counted = record_.stopped_counted = false;
  }

  void begin(const Present& one) {
    const Claim& holding = one.holding;
    const bool seen = one.dated ? holding.since >= judgement_.sees_since : !begins_unseen();
    Happening event{.kind = Happening::Kind::granted,
                    .owner = holding.owner,
                    .at = holding.since,
                    .counted = seen,
                    .shared = holding.shared,
                    .ttl = next_.ttl_left};
    const Claim* const waiter = waiter_before(holding.owner);
    if (waiter != nullptr && !waiter->began_unseen) {
      event.waited = std::max(holding.since - waiter->since, Duration::zero());
    }
    if (holding.owner != kUnnamed) event.took_over = takes_over(holding);
    record_.extended = holding.since;
    found_.list.push_back(event);
  }

  /// The owner of a holding that began unnamed.
  void name(std::uint64_t owner) {
    Claim holding = holders_.front().holding;
    holding.owner = owner;
    found_.list.push_back({.kind = Happening::Kind::named,
                           .owner = owner,
                           .at = next_.at,
                           .counted = !holding.began_unseen,
                           .took_over = takes_over(holding),
                           .ttl = next_.ttl_left});
  }

  /// Whether the holding began right after another client's had expired. Asked once.
  bool takes_over(const Claim& holding) {
    const auto expired_at = std::exchange(record_.expired_at, std::nullopt);
    return expired_at && record_.expired_owner != holding.owner && !next_.late &&
           holding.since - *expired_at <= kTakenOverWithin;
  }

  /// The holders are the same: a renewal or re-entry, if anything.
  void extend() {
    if (reentered_) {
      record_.extended = next_.at;
      return;
    }
    if (!next_.ttl_left || !record_.expiry) return;
    if (is_given_back()) return give_back();
    if (next_.at + *next_.ttl_left <= *record_.expiry + kTtlError) return;
    if (next_.extended_by_store) return;
    const Claim& holding = holders_.front().holding;
    Happening event{.kind = Happening::Kind::renewed, .owner = holding.owner, .at = next_.at};
    take_margin(event);
    if (!holding.began_unseen || record_.renewals > 0) {
      record_.renewal_interval = std::max(record_.renewal_interval, next_.at - record_.extended);
    }
    ++record_.renewals;
    record_.extended = next_.at;
    record_.given_back = record_.stopped_counted = false;
    found_.list.push_back(event);
  }

  /// How much earlier an expiry must be told to have been moved.
  Duration least_shortening() const { return std::max(kTtlError, record_.ttl / kThin); }

  /// Whether a command moved the expiry to an earlier time; a look alone may only be more precise.
  bool is_given_back() const {
    const bool may_have_changed = next_.changes > 0 || judgement_.accuracy == Accuracy::sampled;
    return may_have_changed && next_.at + *next_.ttl_left < *record_.expiry - least_shortening();
  }

  void give_back() {
    Happening event{.kind = Happening::Kind::given_back,
                    .owner = holders_.front().holding.owner,
                    .at = next_.at};
    take_margin(event);
    record_.given_back = true;
    record_.renewals = 0;
    record_.extended = next_.at;
    found_.list.push_back(event);
  }

  const Claim* waiter_before(std::uint64_t owner) const {
    const auto found = std::ranges::find(record_.waiters, owner, &Claim::owner);
    return found == record_.waiters.end() ? nullptr : &*found;
  }

  void take_waiters() {
    const std::uint64_t listed = next_.waiting ? next_.waiting->size() : 0;
    if (next_.waiting || next_.waiters) {
      record_.waiting = std::max(listed, next_.waiters.value_or(0));
    }
    if (!next_.waiting) return;
    if (next_.waiting->size() > kMostParties) next_.waiting->resize(kMostParties);
    std::vector<Claim> waiters;
    for (const Party& party : *next_.waiting) {
      Claim waiter = claim_of(party);
      const Claim* const before = party.since ? nullptr : waiter_before(waiter.owner);
      waiters.push_back(before != nullptr ? *before : waiter);
    }
    record_.waiters = std::move(waiters);
  }

  /// Copies the sighted state into the record.
  void settle() {
    record_.holders.clear();
    for (const Present& one : holders_) record_.holders.push_back(one.holding);
    if (next_.shape != Shape::unknown) record_.shape = next_.shape;
    record_.epoch = judgement_.epoch;
    record_.known = true;
    record_.at = next_.at;
    if (next_.fence) record_.fence = next_.fence;
    if (record_.holders.empty()) reset_holding();
    record_.no_ttl = next_.no_ttl && !record_.holders.empty();
    if (!record_.holders.empty()) settle_ttl();
  }

  void settle_ttl() {
    if (!next_.ttl_left) {
      if (next_.no_ttl) record_.expiry.reset();
      return;
    }
    const TimePoint expiry = next_.at + *next_.ttl_left;
    // The lock was renewed, or a second command set a TTL shorter than that of the first.
    const bool set_anew = !record_.expiry || expiry > *record_.expiry + kTtlError ||
                          expiry < *record_.expiry - least_shortening();
    if (set_anew) record_.ttl = *next_.ttl_left;
    record_.expiry = expiry;
    record_.had_ttl = true;
  }

  LockRecord& record_;
  Sighting next_;
  const Judgement& judgement_;
  const bool after_gap_;  ///< its source was blind after the previous sighting
  Happenings found_;
  std::vector<Present> holders_;
  bool reentered_ = false;  ///< a holder's re-entrancy count changed
  std::optional<std::uint64_t> named_{};
};

/// One row for each Happening::Kind, in its order: name, counter, and finding. Null and empty if
/// the kind alone does not decide.
struct Row {
  std::string_view name;
  std::uint64_t Counts::*count;
  std::string_view finding{};
};
constexpr auto kHappenings =
    std::to_array<Row>({{"granted", nullptr},
                        {"renewed", &Counts::renewals},
                        {"released", &Counts::releases},
                        {"expired", &Counts::expired_while_held, "expired"},
                        {"undecided", &Counts::undecided, "thin_margin"},
                        {"session_lost", &Counts::session_lost, "dead_session"},
                        {"owner_changed", &Counts::owner_changed, "stolen"},
                        {"lapsed", &Counts::lapsed, "never_released"},
                        {"replaced", nullptr},
                        {"given_back", nullptr},
                        {"named", nullptr}});
static_assert(kHappenings.size() == static_cast<std::size_t>(Happening::Kind::named) + 1);

const Row& row_of(Happening::Kind kind) { return kHappenings[static_cast<std::size_t>(kind)]; }

}  // namespace

std::string_view name_of(Happening::Kind kind) { return row_of(kind).name; }

std::string_view wrong_with(const Happening& event) {
  if (event.took_over) return "taken_over";
  if (event.leaked) return "no_ttl";
  if (event.thin) return "thin_margin";
  return row_of(event.kind).finding;
}

bool is_end(Happening::Kind kind) {
  return kind >= Happening::Kind::released && kind <= Happening::Kind::replaced;
}

void add(Counts& counts, const Happenings& happenings) {
  counts.acquisitions += happenings.unseen_holdings;
  counts.releases += happenings.unseen_releases;
  for (const Happening& event : happenings.list) {
    counts.without_ttl += event.leaked ? 1 : 0;
    counts.thin_margins += event.thin ? 1 : 0;
    if (const auto count = row_of(event.kind).count) ++(counts.*count);
    counts.taken_over += event.took_over ? 1 : 0;
    if (event.kind != Happening::Kind::granted) continue;
    counts.acquisitions += event.counted ? 1 : 0;
  }
}

std::uint64_t hash_of(std::string_view text, std::string_view salt) {
  std::string salted(salt);
  salted += text;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(salted.data()), salted.size(), digest);
  std::uint64_t hash = 0;
  std::memcpy(&hash, digest, sizeof(hash));
  return hash;
}

std::string random_salt() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

std::string shown_hash(std::uint64_t hash) { return fmt::format("{:010x}", hash >> 24); }

bool LockRecord::renewal_stopped(TimePoint now) const {
  if (holders.empty() || renewals < kEnoughRenewals || !expiry) return false;
  return now - extended > renewal_interval + renewal_interval / 2 + kUndecidedWithin;
}

bool LockRecord::shows_life(TimePoint now) const {
  if (facts_of(shape).of_session) return !no_ttl;
  return renewals >= kEnoughRenewals && !renewal_stopped(now);
}

bool LockRecord::is_leak(TimePoint now) const {
  return !holders.empty() && no_ttl && !had_ttl && facts_of(shape).has_ttl &&
         now - holders.front().since >= kLeakAfter;
}

Happenings derive(LockRecord& record, Sighting sighting, const Judgement& judgement) {
  return Step(record, std::move(sighting), judgement).take();
}

}  // namespace lockbench::watch
