#include "watch/sources/redis_lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "strategies/number.h"

namespace lockbench::watch {
namespace {

using redis::Reply;

/// More is no owner; the ledger keeps a hash anyway.
constexpr std::size_t kLongestToken = 256, kMostOwners = 1024;

std::string owner_of(std::string_view text) { return std::string(text.substr(0, kLongestToken)); }

bool is_text(const Reply& reply) {
  return reply.type == Reply::Type::string || reply.type == Reply::Type::status;
}

std::string upper(std::string_view word) {
  std::string all(word);
  std::ranges::transform(all, all.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return all;
}

/// Owners and counts in turn; Redisson's read-write locks have their mode beside them.
bool read_owners(const Reply& hash, Sighting& sighting) {
  const auto& parts = hash.elements;
  if (parts.size() % 2 != 0 || parts.size() > 2 * kMostOwners) return false;
  bool shared = false;
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    if (!is_text(parts[i]) || !is_text(parts[i + 1])) return false;
    const std::string &field = parts[i].text, &value = parts[i + 1].text;
    if (field == "mode") {
      if (value != "read" && value != "write") return false;
      shared = value == "read";
      continue;
    }
    const auto count = parse_number<std::int64_t>(value);
    if (!count || *count < 1) return false;
    sighting.holders.push_back(
        {.owner = owner_of(field), .entries = static_cast<std::uint64_t>(*count)});
  }
  for (Party& holder : sighting.holders) holder.shared = shared;
  return true;
}

void read_time_left(const Reply& reply, Sighting& sighting) {
  constexpr std::int64_t kForever = -1, kLongest = std::int64_t{1000} * 60 * 60 * 24 * 36'525;
  if (reply.type != Reply::Type::integer || sighting.holders.empty()) return;
  if (reply.integer == kForever) {
    sighting.no_ttl = true;
  } else if (reply.integer >= 0) {
    sighting.ttl_left = std::chrono::milliseconds(std::min(reply.integer, kLongest));
  }
}

/// Reads one word in quotes, as MONITOR writes them, from the front. False: there is none.
bool take_word(std::string_view& line, std::string& word) {
  word.clear();
  const std::size_t begin = line.find('"');
  if (begin == std::string_view::npos) return false;
  for (std::size_t at = begin + 1; at < line.size(); ++at) {
    if (line[at] == '"') {
      line.remove_prefix(at + 1);
      return true;
    }
    if (line[at] == '\\' && at + 1 < line.size()) {
      ++at;
      if (line[at] == 'x' && at + 2 < line.size()) {
        unsigned byte = 0;
        std::from_chars(line.data() + at + 1, line.data() + at + 3, byte, 16);
        word += static_cast<char>(byte);
        at += 2;
        continue;
      }
    }
    word += line[at];
  }
  return false;
}

}  // namespace

KeyKind kind_of_type(std::string_view type) {
  if (type == "string") return KeyKind::text;
  if (type == "hash") return KeyKind::hash;
  return type == "none" ? KeyKind::unknown : KeyKind::other;
}

std::optional<Sighting> read_redis_lock(const std::string& key, KeyKind kind,
                                        const RedisAnswers& answers) {
  Sighting sighting;
  sighting.lock = key;
  const Reply& value = answers.value;
  if (kind == KeyKind::hash) {
    sighting.shape = Shape::redisson_hash;
    if (value.type != Reply::Type::array || !read_owners(value, sighting)) return std::nullopt;
  } else {
    sighting.shape = Shape::token;
    if (is_text(value)) {
      sighting.holders.push_back({.owner = owner_of(value.text)});
    } else if (!value.is_nil()) {
      return std::nullopt;
    }
  }
  read_time_left(answers.time_left, sighting);
  return sighting;
}

std::optional<Companion> companion_of(std::string_view key) {
  struct Suffix {
    std::string_view text;
    Companion::What what;
  };
  static constexpr std::array<Suffix, 12> kSuffixes{{
      {":fencing", Companion::What::fence},
      {":fence", Companion::What::fence},
      {":fencing_token", Companion::What::fence},
      {":queue", Companion::What::queue},
      {":liveness", Companion::What::other},
      {":numbers", Companion::What::other},
      {":readers", Companion::What::other},
      {":writers", Companion::What::other},
      {":counter", Companion::What::other},
      {":rwlock_timeout", Companion::What::other},
      {":timeout_set", Companion::What::other},
      {":channel", Companion::What::other},
  }};
  for (const Suffix& suffix : kSuffixes) {
    if (key.size() <= suffix.text.size() || !key.ends_with(suffix.text)) continue;
    return Companion{.what = suffix.what,
                     .lock = std::string(key.substr(0, key.size() - suffix.text.size()))};
  }
  for (const std::string_view prefix : {"redisson_lock_queue:", "redisson_lock_timeout:",
                                        "redisson_rwlock:", "redisson_unlock_latch:"}) {
    if (key.starts_with(prefix)) return Companion{};
  }
  if (key.find(":wake:") != std::string_view::npos) return Companion{};
  return std::nullopt;
}

std::string redisson_channel(std::string_view lock) {
  return fmt::format("redisson_lock__channel:{{{}}}", lock);
}
std::string redisson_queue(std::string_view lock) {
  return fmt::format("redisson_lock_queue:{{{}}}", lock);
}

KeyEvent key_event_of(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kWrites{
      "set",     "getset",       "setrange", "append", "incrby",    "incrbyfloat", "hset",
      "hincrby", "hincrbyfloat", "hdel",     "hsetnx", "rename_to", "restore",     "copy_to"};
  if (name == "expired") return KeyEvent::expired;
  if (name == "del" || name == "unlink" || name == "evicted" || name == "rename_from" ||
      name == "move_from") {
    return KeyEvent::released;
  }
  if (name == "expire" || name == "persist") return KeyEvent::timed;
  return std::ranges::find(kWrites, name) == kWrites.end() ? KeyEvent::none : KeyEvent::written;
}

bool notifies_of_locks(std::string_view flags, char by) {
  const auto has = [&](char flag) { return flags.find(flag) != std::string_view::npos; };
  // Evictions apart, which are in A too.
  const bool all = has('A') || (has('g') && has('$') && has('h') && has('x'));
  return has(by) && all;
}

std::optional<MonitoredCommand> read_monitored(std::string_view line) {
  const std::size_t opened = line.find('['), closed = line.find(']');
  if (opened == std::string_view::npos || closed == std::string_view::npos || closed < opened) {
    return std::nullopt;
  }
  MonitoredCommand command;
  line.remove_prefix(closed + 1);
  std::string name, word;
  if (!take_word(line, name)) return std::nullopt;
  name = upper(name);
  constexpr std::size_t kMostWords = 16;
  while (command.words.size() < kMostWords && take_word(line, word)) {
    command.words.push_back(word.substr(0, kLongestToken));
  }
  if (command.words.empty()) return std::nullopt;
  command.key = command.words[0];
  using What = MonitoredCommand::What;
  if (name == "SET") {
    const bool only_new = std::any_of(command.words.begin() + 1, command.words.end(),
                                      [](const std::string& each) { return upper(each) == "NX"; });
    command.what = only_new ? What::attempt : What::written;
  } else if (name == "SETNX" || name == "HSETNX") {
    command.what = What::attempt;
  } else if (name == "DEL" || name == "UNLINK") {
    command.what = What::released;
  } else if (name == "GETSET" || name == "HSET" || name == "HINCRBY") {
    command.what = What::written;
  } else if (name == "EVAL" || name == "EVALSHA" || name == "FCALL") {
    if (command.words.size() < 3) return std::nullopt;
    command.key = command.words[2];
    command.what = What::named;
  } else {
    return std::nullopt;
  }
  return command;
}

}  // namespace lockbench::watch
