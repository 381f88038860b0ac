#include "watch/sources/postgres_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "watch/sources/patterns.h"

namespace lockbench::watch {
namespace {

std::string owner_of(const PostgresLock& lock) {
  return lock.process == 0 ? "prepared transaction" : fmt::format("process {}", lock.process);
}

Party party_of(const PostgresLock& lock, std::optional<Duration> lasted, TimePoint at) {
  Party party{.owner = owner_of(lock), .shared = lock.shared};
  if (lasted) party.since = at - *lasted;
  return party;
}

Party waiter_of(const PostgresLock& lock, TimePoint at) { return party_of(lock, lock.waited, at); }

bool has(const std::vector<Party>& parties, const std::string& owner) {
  return std::any_of(parties.begin(), parties.end(),
                     [&](const Party& party) { return party.owner == owner; });
}

void hold(Sighting& seen, Party party) {
  if (!has(seen.holders, party.owner)) seen.holders.push_back(std::move(party));
}

/// The lines of one look, by what they say of each other.
struct Lines {
  explicit Lines(const PostgresLook& look) {
    for (const PostgresLock& lock : look.lines) {
      if (lock.kind != PostgresLock::Kind::transaction) continue;
      if (lock.granted) {
        transactions.emplace(lock.name, &lock);
      } else {
        waits.emplace(lock.process, &lock);
      }
    }
  }

  std::map<std::string, const PostgresLock*> transactions;  ///< who has which
  std::map<std::uint64_t, const PostgresLock*> waits;       ///< which transaction a session awaits
  std::set<std::uint64_t> told;  ///< sessions whose wait for a transaction is one for a row
};

/// Whoever is next for a row has its tuple's lock, and waits for the transaction that has the row.
void add_tuple(Sighting& seen, const PostgresLock& lock, Lines& lines, TimePoint at) {
  seen.shape = Shape::row;
  if (!lock.granted) {
    seen.waiting->push_back(waiter_of(lock, at));
    return;
  }
  const auto wait = lines.waits.find(lock.process);
  if (wait == lines.waits.end()) {
    // It has just got the row.
    hold(seen, party_of(lock, lock.transaction, at));
    return;
  }
  lines.told.insert(lock.process);
  Party next = waiter_of(*wait->second, at);
  next.shared = lock.shared;
  seen.waiting->push_back(std::move(next));
  const auto transaction = lines.transactions.find(wait->second->name);
  if (transaction == lines.transactions.end()) return;
  hold(seen, party_of(*transaction->second, transaction->second->transaction, at));
}

void add_advisory(Sighting& seen, const PostgresLock& lock, TimePoint at) {
  seen.shape = Shape::advisory;
  if (lock.granted) {
    hold(seen, party_of(lock, lock.idle, at));
  } else {
    seen.waiting->push_back(waiter_of(lock, at));
  }
}

/// In the order in which they came. Whoever has no beginning comes last.
void sort_waiters(std::vector<Party>& waiting) {
  std::stable_sort(waiting.begin(), waiting.end(), [](const Party& a, const Party& b) {
    return a.since.value_or(TimePoint::max()) < b.since.value_or(TimePoint::max());
  });
}

/// The clocks of watcher and server differ by a little more or less each time.
constexpr Duration kClocksDiffer = std::chrono::milliseconds(20);

/// Whether a look may have left out a lock that it does not show. What stays away is free.
bool may_be_left_out(bool cut, const Sighting& before, TimePoint at) {
  constexpr Duration kStaysAway = std::chrono::seconds(10);
  return cut && at - before.at < kStaysAway;
}

}  // namespace

bool PostgresBook::follows(const std::string& name) const { return matches_any(patterns_, name); }

std::uint64_t PostgresBook::take_left_out() { return std::exchange(left_out_, 0); }

std::vector<Sighting> PostgresBook::replace(Known& known, Known now, bool first, bool cut,
                                            TimePoint at) {
  std::vector<Sighting> seen;
  for (auto& [name, sighting] : now) {
    const auto before = known.find(name);
    sighting.first_look = first;
    for (Party& party : sighting.holders) {
      if (before == known.end()) continue;
      // PostgreSQL does not tell when a lock was granted. What is known of its session is a guess
      // for holdings that were there before the first look. Of later ones, the look that found them
      // is late by as much as that which finds them gone, and so right on average.
      const auto old = std::find_if(before->second.holders.begin(), before->second.holders.end(),
                                    [&](const Party& one) { return one.owner == party.owner; });
      party.since = old != before->second.holders.end() ? old->since : std::nullopt;
    }
    seen.push_back(sighting);
  }
  for (auto& [name, before] : known) {
    if (now.contains(name)) continue;
    if (now.size() < most_ && may_be_left_out(cut, before, at)) {
      now.emplace(name, std::move(before));
      continue;
    }
    Sighting free = free_lock(name, cut ? before.at : at, before.shape);
    if (before.waiting) {
      free.waiting.emplace();
      free.waiters = 0;
    }
    seen.push_back(std::move(free));
  }
  known = std::move(now);
  return seen;
}

std::vector<Sighting> PostgresBook::locks(const PostgresLook& look, TimePoint at) {
  Lines lines(look);
  Known now;
  const auto at_lock = [&](const std::string& name) -> Sighting* {
    if (!follows(name)) return nullptr;
    if (!now.contains(name) && now.size() >= most_) {
      ++left_out_;
      return nullptr;
    }
    Sighting& seen = now[name];
    seen.lock = name;
    seen.at = at;
    if (!seen.waiting) seen.waiting.emplace();
    return &seen;
  };
  const bool first = !std::exchange(looked_, true);
  for (const PostgresLock& lock : look.lines) {
    if (lock.kind == PostgresLock::Kind::transaction) continue;
    Sighting* const seen = at_lock(lock.name);
    if (lock.kind == PostgresLock::Kind::tuple) {
      Sighting unwanted;
      unwanted.waiting.emplace();
      add_tuple(seen != nullptr ? *seen : unwanted, lock, lines, at);
    } else if (seen != nullptr) {
      add_advisory(*seen, lock, at);
      // Only at the first look is the session's rest all that is known.
      if (!first && lock.granted && !locks_.contains(lock.name)) {
        for (Party& party : seen->holders) party.since.reset();
      }
    }
  }
  // Waits for a transaction that are for no row: two that insert the same key.
  for (const auto& [process, lock] : lines.waits) {
    if (lines.told.contains(process)) continue;
    Sighting* const seen = at_lock(lock->name);
    if (seen == nullptr) continue;
    seen->shape = Shape::row;
    seen->waiting->push_back(waiter_of(*lock, at));
    const auto holder = lines.transactions.find(lock->name);
    if (holder == lines.transactions.end()) continue;
    hold(*seen, party_of(*holder->second, holder->second->transaction, at));
  }
  for (auto& [name, seen] : now) {
    sort_waiters(*seen.waiting);
    seen.waiters = seen.waiting->size();
  }
  return replace(locks_, std::move(now), first, look.cut, at);
}

std::vector<Sighting> PostgresBook::rows(const std::string& table, const PostgresTableLook& look,
                                         TimePoint asked_at, TimePoint answered_at) {
  Table& book = tables_[table];
  const bool first = !std::exchange(book.looked, true);
  Known held;
  std::map<std::string, Row> rows;
  for (const PostgresRow& row : look.lines) {
    const std::string name = fmt::format("{}:{}", table, row.name);
    if (!follows(name)) continue;
    if (rows.size() >= most_) {
      ++left_out_;
      continue;
    }
    Row& now = rows[name];
    now = {};
    const TimePoint latest = answered_at + kClocksDiffer;
    if (row.left) now.ends = SteadyTime::between(asked_at + *row.left, latest + *row.left);
    if (row.held) now.begun = SteadyTime::between(asked_at - *row.held, latest - *row.held);
    if (const auto before = book.rows.find(name); before != book.rows.end()) {
      const Row& old = before->second;
      if (now.ends.may_be(old.ends)) now.ends.told = old.ends.told;
      if (now.begun.may_be(old.begun)) now.begun.told = old.begun.told;
    }
    if (row.left && *row.left <= Duration::zero()) continue;
    Sighting& seen = held[name];
    seen.lock = name;
    seen.at = asked_at;
    seen.shape = Shape::table_row;
    // A look that took long told of an end that is too early: how much is left then is not known.
    if (row.left && now.ends.told > asked_at) seen.ttl_left = now.ends.told - asked_at;
    seen.no_ttl = !row.left;
    seen.first_look = first;
    Party holder{.owner = row.owner};
    if (row.held) holder.since = now.begun.told;
    seen.holders = {std::move(holder)};
  }
  std::vector<Sighting> seen;
  for (const auto& [name, sighting] : held) seen.push_back(sighting);
  for (auto& [name, before] : book.held) {
    if (held.contains(name)) continue;
    const Row old = book.rows[name];
    const auto now = rows.find(name);
    const bool missing = now == rows.end();
    if (missing && rows.size() < most_ && may_be_left_out(look.cut, before, asked_at)) {
      rows.emplace(name, old);
      held.emplace(name, std::move(before));
      continue;
    }
    Sighting free = free_lock(name, missing && look.cut ? before.at : asked_at, Shape::table_row);
    // Releasing moves the end to an earlier time, or removes the row.
    const bool moved = missing || now->second.ends.told < old.ends.told;
    // A look leaves out what ended a while ago, moved or not.
    const bool may_be_either = missing && !before.no_ttl && old.ends.told <= asked_at;
    if (!may_be_either) free.ended = moved ? Ending::released : Ending::expired;
    seen.push_back(std::move(free));
  }
  book.held = std::move(held);
  book.rows = std::move(rows);
  return seen;
}

}  // namespace lockbench::watch
