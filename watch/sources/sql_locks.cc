#include "watch/sources/sql_locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

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

bool is_true(const json& value) { return value == json(true) || value == json(1U); }

/// A duration in the past; 0 if the clock was set back.
std::optional<Duration> past(const json& value) {
  const auto read = age(value);
  return read ? std::optional(std::max(*read, Duration::zero())) : std::nullopt;
}

std::optional<SqlLock> read_lock(const json& line) {
  constexpr std::size_t kParts = 7;
  if (!line.is_array() || line.size() != kParts) return std::nullopt;
  if (!line[0].is_string() || line[0] == "" || !line[1].is_string()) return std::nullopt;
  SqlLock lock{.name = line[0].get<std::string>(),
               .owner = line[1].get<std::string>(),
               .shared = is_true(line[2]),
               .granted = is_true(line[3]),
               .waited = past(line[4]),
               .idle = past(line[5])};
  if (line[6].is_string()) lock.who = line[6].get<std::string>();
  return lock;
}

std::optional<SqlTable> read_table(const json& line) {
  if (!line.is_array() || line.size() != 4) return std::nullopt;
  if (!line[0].is_string() || !line[1].is_string()) return std::nullopt;
  return SqlTable{.name = line[0].get<std::string>(),
                  .sql = line[1].get<std::string>(),
                  .readable = is_true(line[2]),
                  .has_locked_at = is_true(line[3])};
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

template <class Line>
SqlLines<Line> read_lines(const json& lines, std::size_t most,
                          std::optional<Line> (*read)(const json&)) {
  SqlLines<Line> look;
  for (const json& line : lines) {
    if (look.lines.size() == most) {
      look.cut = true;
      break;
    }
    if (auto one = read(line)) {
      look.lines.push_back(*std::move(one));
    } else {
      ++look.malformed;
    }
  }
  return look;
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

/// The difference between the clocks of watcher and server varies by this much.
constexpr Duration kClocksDiffer = std::chrono::milliseconds(20);

/// Whether a lock may only be missing because the look was cut. If it stays away for longer, it is
/// free.
bool may_be_left_out(bool cut, const Sighting& before, TimePoint at) {
  constexpr Duration kStaysAway = std::chrono::seconds(10);
  return cut && at - before.at < kStaysAway;
}

}  // namespace

tl::expected<SqlLook, std::string> read_locks(std::string_view text) {
  const json lines = json::parse(text, nullptr, false);
  if (!lines.is_array()) return tl::unexpected<std::string>("its locks cannot be read");
  return read_lines(lines, kMostLocks, read_lock);
}

tl::expected<SqlLines<SqlTable>, std::string> read_tables(std::string_view text) {
  const json lines = json::parse(text, nullptr, false);
  if (!lines.is_array()) return tl::unexpected<std::string>("its tables cannot be read");
  return read_lines(lines, kMostTables, read_table);
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

std::vector<Sighting> SqlBook::locks(const SqlLook& look, TimePoint at) {
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
    if (!seen.waiting) seen.waiting.emplace();
    if (!lock.granted) {
      seen.waiting->push_back(party_of(lock, lock.waited, at));
      continue;
    }
    // The session's idle time is only used for locks held at the first look.
    const bool dated = first || locks_.contains(lock.name);
    hold(seen, party_of(lock, dated ? lock.idle : std::nullopt, at));
  }
  for (auto& [name, seen] : now) {
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
