#include "watch/sources/sql_locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cmath>

#include "watch/sources/keys.h"

namespace lockbench::watch {
namespace {

using nlohmann::json;

/// Reads seconds; nothing if infinite or out of range.
std::optional<Duration> age(const json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto read = value.get<double>();
  if (!(std::abs(read) < seconds(kLongestDuration))) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(read));
}

std::optional<SqlRow> read_row(const json& line) {
  if (!line.is_array() || line.size() != 4 || !line[0].is_string()) return std::nullopt;
  SqlRow row{.name = line[0].get<std::string>(), .owner = {}, .left = {}, .held = {}};
  if (row.name.empty()) return std::nullopt;
  if (line[1].is_string()) row.owner = line[1].get<std::string>();
  row.left = age(line[2]);
  row.held = past(line[3]);
  // A row that ends at infinity is held for ever; a row with an unreadable end is malformed.
  const bool for_ever = line[2] == json("Infinity") || (line[2].is_number() && line[2] > 0);
  if (!row.left && !for_ever) return std::nullopt;
  return row;
}

Party party_of(const SqlLock& lock, std::optional<Duration> lasted, TimePoint at) {
  Party party{.owner = lock.owner, .shared = lock.shared};
  if (lasted) party.since = at - *lasted;
  party.about = lock.who.empty() ? party.owner : fmt::format("{} ({})", party.owner, lock.who);
  return party;
}

void hold(Sighting& seen, Party party) {
  const auto found = std::ranges::find(seen.holders, party.owner, &Party::owner);
  if (found == seen.holders.end()) seen.holders.push_back(std::move(party));
}

/// A look that is not made at one moment may show a holder beside the one before it.
void keep_latest(std::vector<Party>& holders, const Sighting* before) {
  const auto alone = [](const Party& party) { return !party.shared; };
  if (holders.size() < 2 || !std::ranges::all_of(holders, alone)) return;
  const auto latest = std::ranges::find_if(holders, [&](const Party& party) {
    return before == nullptr || !std::ranges::any_of(before->holders, [&](const Party& old) {
             return old.owner == party.owner;
           });
  });
  const Party kept = latest == holders.end() ? holders.back() : *latest;
  holders = {kept};
}

/// The difference between the clocks of watcher and server varies by this much.
constexpr Duration kClocksDiffer = std::chrono::milliseconds(20);

/// Whether a lock may only be missing because the look was cut. If it stays away for longer, it is
/// free.
bool may_be_left_out(bool cut, const Sighting& before, TimePoint at) {
  constexpr Duration kStaysAway = std::chrono::seconds(10);
  return cut && at - before.at < kStaysAway;
}

}  // namespace

std::string quoted(const std::string& name, const std::string& quote) {
  return quote + boost::replace_all_copy(name, quote, quote + quote) + quote;
}

std::optional<std::uint64_t> number(const json& value, std::uint64_t most) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto read = value.get<std::uint64_t>();
  return read <= most ? std::optional(read) : std::nullopt;
}

std::optional<Duration> past(const json& value) {
  const auto read = age(value);
  return read ? std::optional(std::max(*read, Duration::zero())) : std::nullopt;
}

tl::expected<SqlLook, std::string> read_locks(std::string_view text,
                                              std::optional<SqlLock> (*read)(const json&)) {
  const json lines = json::parse(text, nullptr, false);
  if (!lines.is_array()) return tl::unexpected<std::string>("its locks cannot be read");
  return read_lines(lines, kMostLocks, read);
}

tl::expected<std::vector<SqlTableLook>, std::string> read_table_look(std::string_view text,
                                                                     std::size_t tables) {
  const json answer = json::parse(text, nullptr, false);
  if (!answer.is_array() || answer.size() != tables) {
    return tl::unexpected<std::string>("its lock tables cannot be read");
  }
  std::vector<SqlTableLook> looks;
  for (const json& lines : answer) {
    if (!lines.is_array()) return tl::unexpected<std::string>("its lock tables cannot be read");
    looks.push_back(read_lines(lines, kMostTableRows, read_row));
  }
  return looks;
}

std::vector<Sighting> SqlBook::replace(Known& known, Known now, bool first, bool cut,
                                       TimePoint at) {
  std::vector<Sighting> seen;
  for (auto& [name, sighting] : now) {
    const auto before = known.find(name);
    sighting.first_look = first;
    for (Party& party : sighting.holders) {
      if (before == known.end()) continue;
      // The server does not tell when a lock was granted. For holdings older than the first look,
      // the session's times are a guess. For later ones, use the time of the look: it is on average
      // as late at the beginning as at the end, so durations are right on average.
      const auto old = std::ranges::find(before->second.holders, party.owner, &Party::owner);
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

std::vector<Sighting> SqlBook::locks(const SqlLook& look, TimePoint at, bool tells_waiters) {
  Known now;
  const bool first = !std::exchange(looked_, true);
  for (const SqlLock& lock : look.lines) {
    if (!is_wanted(request_, lock.name)) continue;
    if (!now.contains(lock.name) && now.size() >= most_) {
      ++left_out_;
      continue;
    }
    Sighting& seen = now[lock.name];
    if (seen.lock.empty()) seen = free_lock(lock.name, at, Shape::advisory);
    if (tells_waiters && !seen.waiting) seen.waiting.emplace();
    if (!lock.granted) {
      if (!tells_waiters) continue;
      seen.waiting->push_back(party_of(lock, lock.waited, at));
      continue;
    }
    // The session's idle time is only used for locks held at the first look.
    const bool dated = first || locks_.contains(lock.name);
    hold(seen, party_of(lock, dated ? lock.idle : std::nullopt, at));
  }
  for (auto& [name, seen] : now) {
    const auto before = locks_.find(name);
    keep_latest(seen.holders, before == locks_.end() ? nullptr : &before->second);
    if (!seen.waiting) continue;
    // In order of arrival; waiters with unknown arrival come last.
    std::ranges::stable_sort(*seen.waiting, {}, [](const Party& party) {
      return party.since.value_or(TimePoint::max());
    });
    seen.waiters = seen.waiting->size();
  }
  return replace(locks_, std::move(now), first, look.cut, at);
}

std::vector<Sighting> SqlBook::rows(const std::string& table, const SqlTableLook& look,
                                    TimePoint asked_at, TimePoint answered_at) {
  Table& book = tables_[table];
  const bool first = !std::exchange(book.looked, true);
  Known held;
  std::map<std::string, Row> rows;
  for (const SqlRow& row : look.lines) {
    const std::string name = fmt::format("{}:{}", table, row.name);
    if (!is_wanted(request_, name)) continue;
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
    // After a slow look the end may appear to have passed; the remaining time is unknown then.
    if (row.left && now.ends.told > asked_at) seen.ttl_left = now.ends.told - asked_at;
    seen.no_ttl = !row.left;
    seen.first_look = first;
    Party holder{.owner = row.owner, .about = row.owner};
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
    // A release moves the end to an earlier time or deletes the row.
    const bool moved = missing || now->second.ends.told < old.ends.told;
    // The query omits rows that ended a while ago, so a missing row may have expired or been
    // released.
    const bool may_be_either = missing && !before.no_ttl && old.ends.told <= asked_at;
    if (!may_be_either) free.ended = moved ? Ending::released : Ending::expired;
    seen.push_back(std::move(free));
  }
  book.held = std::move(held);
  book.rows = std::move(rows);
  return seen;
}

}  // namespace lockbench::watch
