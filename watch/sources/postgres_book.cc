#include "watch/sources/postgres_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "watch/sources/patterns.h"

namespace lockbench::watch {
namespace {

/// Two readings of one end, on different clocks.
constexpr Duration kClockError = std::chrono::milliseconds(20);

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
    for (const PostgresLock& lock : look.locks) {
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

/// The same beginning is read a little differently each time.
void keep_beginning(Sighting& seen, const std::map<std::string, Sighting>& known) {
  const auto before = known.find(seen.lock);
  if (before == known.end()) return;
  Party &now = seen.holders.front(), old = before->second.holders.front();
  if (now.owner != old.owner || !now.since || !old.since) return;
  if (std::chrono::abs(*now.since - *old.since) < kClockError) now.since = old.since;
}

}  // namespace

bool PostgresBook::follows(const std::string& name) const { return matches_any(patterns_, name); }

std::uint64_t PostgresBook::take_left_out() { return std::exchange(left_out_, 0); }

std::vector<Sighting> PostgresBook::replace(Known& known, Known now, bool first, TimePoint at) {
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
  for (const auto& [name, before] : known) {
    if (now.contains(name)) continue;
    Sighting free;
    free.lock = name;
    free.at = at;
    free.shape = before.shape;
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
  for (const PostgresLock& lock : look.locks) {
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
  return replace(locks_, std::move(now), first, at);
}

std::vector<Sighting> PostgresBook::rows(const std::string& table, const PostgresTableLook& look,
                                         TimePoint at) {
  Table& book = tables_[table];
  Known held;
  std::map<std::string, TimePoint> ends;
  for (const PostgresRow& row : look.rows) {
    const std::string name = fmt::format("{}:{}", table, row.name);
    if (!follows(name)) continue;
    if (ends.size() >= most_) {
      ++left_out_;
      continue;
    }
    ends[name] = row.left ? at + *row.left : TimePoint::max();
    if (row.left && *row.left <= Duration::zero()) continue;
    Sighting& seen = held[name];
    seen.lock = name;
    seen.at = at;
    seen.shape = Shape::table_row;
    seen.ttl_left = row.left;
    seen.no_ttl = !row.left;
    Party holder{.owner = row.owner};
    if (row.held) holder.since = at - *row.held;
    seen.holders = {std::move(holder)};
  }
  const bool first = !std::exchange(book.looked, true);
  std::vector<Sighting> seen;
  for (auto& [name, sighting] : held) {
    sighting.first_look = first;
    keep_beginning(sighting, book.held);
    seen.push_back(sighting);
  }
  for (const auto& [name, before] : book.held) {
    if (held.contains(name)) continue;
    Sighting free;
    free.lock = name;
    free.at = at;
    free.shape = Shape::table_row;
    // Releasing moves the end to an earlier time, or removes the row.
    const auto end = ends.find(name), old = book.ends.find(name);
    const bool moved =
        end == ends.end() || old == book.ends.end() || end->second + kClockError < old->second;
    free.ended = moved ? Ending::released : Ending::expired;
    seen.push_back(std::move(free));
  }
  book.held = std::move(held);
  book.ends = std::move(ends);
  return seen;
}

}  // namespace lockbench::watch
