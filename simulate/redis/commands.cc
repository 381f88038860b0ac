#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "simulate/redis/lua_scripts.h"
#include "simulate/redis/model.h"
#include "simulate/redis/replies.h"

// The commands, each on the data of the session's database.

namespace lockbench::simulate {
namespace {

Reply wrong_type() {
  return error("WRONGTYPE Operation against a key holding the wrong kind of value");
}
Reply syntax_error() { return error("ERR syntax error"); }

std::optional<double> to_double(std::string_view word) {
  double value = 0;
  if (word.starts_with('+')) word.remove_prefix(1);
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = failed == std::errc() && end == word.data() + word.size();
  return whole && !std::isnan(value) ? std::optional(value) : std::nullopt;
}

std::string score_text(double score) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (std::abs(score) < kExact && score == std::floor(score)) {
    return std::to_string(static_cast<std::int64_t>(score));
  }
  if (std::isinf(score)) return score > 0 ? "inf" : "-inf";
  return fmt::format("{:.17g}", score);
}

Reply invalid_time(std::string_view name) {
  return error(fmt::format("ERR invalid expire time in '{}' command", lower(name)));
}
Reply overflow() { return error("ERR increment or decrement would overflow"); }

}  // namespace

RedisModel::Entry* RedisModel::find(std::string_view key) {
  Keys& keys = database();
  const auto found = keys.find(key);
  if (found == keys.end()) return nullptr;
  if (now_ <= found->second.expires) return &found->second;
  keys.erase(found);
  return nullptr;
}

template <class T>
T* RedisModel::find_as(std::string_view key, bool& wrong) {
  Entry* const entry = find(key);
  if (entry == nullptr) return nullptr;
  T* const value = std::get_if<T>(&entry->value);
  wrong = value == nullptr;
  return value;
}

template <class T, class Act>
Reply RedisModel::on(std::string_view key, const Act& act) {
  bool wrong = false;
  T* const value = find_as<T>(key, wrong);
  if (wrong) return wrong_type();
  static thread_local T none;  // which stays empty, as there is nothing to remove
  Reply reply = act(value == nullptr ? none : *value);
  if (value != nullptr) drop_if_empty<T>(key, *value);
  return reply;
}

template <class T, class Act>
Reply RedisModel::make(std::string_view key, const Act& act) {
  bool wrong = false;
  T* value = find_as<T>(key, wrong);
  if (wrong) return wrong_type();
  if (value == nullptr) value = &database()[std::string(key)].value.template emplace<T>();
  changed_ = true;
  return act(*value);
}

RedisModel::Entry& RedisModel::put(std::string_view key, std::string value) {
  Keys& keys = database();
  const auto found = keys.find(key);
  Entry& entry = found != keys.end() ? found->second : keys[std::string(key)];
  entry.value = std::move(value);
  entry.expires = kNever;
  changed_ = true;
  return entry;
}

template <class T>
void RedisModel::drop_if_empty(std::string_view key, const T& value) {
  if constexpr (requires { value.scores; }) {
    if (value.scores.empty()) remove(key);
  } else if constexpr (!std::is_same_v<T, std::string>) {
    if (value.empty()) remove(key);
  }
}

/// SET key value [NX] [EX s|PX ms]
Reply RedisModel::set(Words words) {
  bool only_new = false;
  std::optional<std::string_view> time;
  std::int64_t unit = 1;
  for (std::size_t i = 3; i < words.size(); ++i) {
    const bool in_seconds = equal_words(words[i], "EX");
    if (equal_words(words[i], "NX")) {
      only_new = true;
    } else if ((in_seconds || equal_words(words[i], "PX")) && i + 1 < words.size() && !time) {
      unit = in_seconds ? 1000 : 1;
      time = words[++i];
    } else {
      return syntax_error();
    }
  }
  std::int64_t expires = kNever;
  if (time) {
    const auto value = to_integer(*time);
    if (!value) return not_an_integer();
    if (*value <= 0 || *value > (kNever - now_) / unit) return invalid_time(words[0]);
    expires = now_ + *value * unit;
  }
  if (only_new && find(words[1]) != nullptr) return {};
  put(words[1], std::string(words[2])).expires = expires;
  return ok();
}

Reply RedisModel::setnx(Words words) {
  if (find(words[1]) != nullptr) return integer(0);
  put(words[1], std::string(words[2]));
  return integer(1);
}

Reply RedisModel::get(Words words) {
  bool wrong = false;
  const auto* const value = find_as<std::string>(words[1], wrong);
  if (wrong) return wrong_type();
  return value == nullptr ? Reply() : text(*value);
}

Reply RedisModel::getset(Words words) {
  Reply old = get(words);
  if (old.type != Reply::Type::error) put(words[1], std::string(words[2]));
  return old;
}

Reply RedisModel::del(Words words) {
  std::int64_t removed = 0;
  for (const std::string_view key : words.subspan(1)) {
    if (find(key) == nullptr) continue;
    remove(key);
    ++removed;
  }
  changed_ = removed > 0;
  return integer(removed);
}

Reply RedisModel::exists(Words words) {
  return integer(std::ranges::count_if(words.subspan(1),
                                       [&](std::string_view key) { return find(key) != nullptr; }));
}

Reply RedisModel::expire_in(Words words, std::int64_t unit, bool absolute) {
  const auto value = to_integer(words[2]);
  if (!value) return not_an_integer();
  const std::int64_t base = absolute ? 0 : now_;
  if (*value > (kNever - base) / unit || *value < -(kNever / unit)) return invalid_time(words[0]);
  const std::int64_t when = base + *value * unit;
  Entry* const entry = find(words[1]);
  if (entry == nullptr) return integer(0);
  changed_ = true;
  if (when <= now_) {
    remove(words[1]);
  } else {
    entry->expires = when;
  }
  return integer(1);
}

Reply RedisModel::pttl(Words words) {
  const Entry* const entry = find(words[1]);
  if (entry == nullptr) return integer(-2);
  return integer(entry->expires == kNever ? -1 : entry->expires - now_);
}

Reply RedisModel::incr(Words words) {
  bool wrong = false;
  auto* const value = find_as<std::string>(words[1], wrong);
  if (wrong) return wrong_type();
  const auto old = value == nullptr ? std::optional<std::int64_t>(0) : to_integer(*value);
  if (!old) return not_an_integer();
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*old, std::int64_t{1}, &sum)) return overflow();
  if (value == nullptr) put(words[1], "");
  std::get<std::string>(find(words[1])->value) = std::to_string(sum);
  changed_ = true;
  return integer(sum);
}

// Hashes.

Reply RedisModel::hset(Words words) {
  if (words.size() % 2 != 0) return wrong_count(words[0]);
  return make<Hash>(words[1], [&](Hash& hash) {
    std::int64_t added = 0;
    for (std::size_t i = 2; i < words.size(); i += 2) {
      added += hash.insert_or_assign(std::string(words[i]), std::string(words[i + 1])).second;
    }
    return integer(added);
  });
}

Reply RedisModel::hget(Words words) {
  return on<Hash>(words[1], [&](const Hash& hash) {
    const auto field = hash.find(words[2]);
    return field == hash.end() ? Reply() : text(field->second);
  });
}

Reply RedisModel::hdel(Words words) {
  return on<Hash>(words[1], [&](Hash& hash) {
    std::int64_t removed = 0;
    for (const std::string_view name : words.subspan(2)) {
      const auto field = hash.find(name);
      if (field == hash.end()) continue;
      hash.erase(field);
      ++removed;
    }
    changed_ = removed > 0;
    return integer(removed);
  });
}

Reply RedisModel::hexists(Words words) {
  return on<Hash>(words[1],
                  [&](const Hash& hash) { return integer(hash.contains(words[2]) ? 1 : 0); });
}

Reply RedisModel::hincrby(Words words) {
  const auto by = to_integer(words[3]);
  if (!by) return not_an_integer();
  std::int64_t sum = 0;
  Reply reply = on<Hash>(words[1], [&](const Hash& hash) {
    const auto field = hash.find(words[2]);
    const auto old =
        field == hash.end() ? std::optional<std::int64_t>(0) : to_integer(field->second);
    if (!old) return error("ERR hash value is not an integer");
    return __builtin_add_overflow(*old, *by, &sum) ? overflow() : integer(sum);
  });
  if (reply.type == Reply::Type::error) return reply;
  return make<Hash>(words[1], [&](Hash& hash) {
    hash.insert_or_assign(std::string(words[2]), std::to_string(sum));
    return reply;
  });
}

// Lists.

Reply RedisModel::rpush(Words words) {
  return make<List>(words[1], [&](List& list) {
    list.insert(list.end(), words.begin() + 2, words.end());
    grown_.emplace_back(database_, words[1]);
    return integer(static_cast<std::int64_t>(list.size()));
  });
}

Reply RedisModel::blpop(Words words) {
  const auto timeout = to_double(words.back());
  if (!timeout) return error("ERR timeout is not a float or out of range");
  if (*timeout < 0) return error("ERR timeout is negative");
  Reply popped;
  for (const std::string_view key : words.subspan(1, words.size() - 2)) {
    popped = on<List>(key, [&](List& list) {
      if (list.empty()) return Reply();
      Reply first = text(list.front());
      list.pop_front();
      changed_ = true;
      return list_of({text(key), std::move(first)});
    });
    if (!popped.is_nil()) break;
  }
  return popped;
}

// Sorted sets.

Reply RedisModel::zadd(Words words) {
  if (words.size() % 2 != 0) return syntax_error();
  std::vector<double> scores;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const auto score = to_double(words[i]);
    if (!score) return error("ERR value is not a valid float");
    scores.push_back(*score);
  }
  return make<SortedSet>(words[1], [&](SortedSet& set) {
    std::int64_t added = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      std::string member(words[2 * i + 3]);
      const auto [place, is_new] = set.scores.try_emplace(member, scores[i]);
      if (!is_new) set.order.erase({place->second, member});
      added += is_new ? 1 : 0;
      place->second = scores[i];
      set.order.insert({scores[i], std::move(member)});
    }
    return integer(added);
  });
}

Reply RedisModel::zrem(Words words) {
  return on<SortedSet>(words[1], [&](SortedSet& set) {
    std::int64_t removed = 0;
    for (const std::string_view member : words.subspan(2)) {
      const auto place = set.scores.find(member);
      if (place == set.scores.end()) continue;
      set.order.erase({place->second, place->first});
      set.scores.erase(place);
      ++removed;
    }
    changed_ = removed > 0;
    return integer(removed);
  });
}

/// key first last [WITHSCORES]
Reply RedisModel::range(Words words, bool reverse) {
  const auto first = to_integer(words[2]), last = to_integer(words[3]);
  const bool with_scores = words.size() == 5;
  if (with_scores && !equal_words(words[4], "WITHSCORES")) return syntax_error();
  if (!first || !last) return not_an_integer();
  return on<SortedSet>(words[1], [&](const SortedSet& set) {
    Reply members = list_of({});
    const auto size = static_cast<std::int64_t>(set.order.size());
    const auto from_end = [&](std::int64_t place) { return place < 0 ? place + size : place; };
    const std::int64_t end = std::min(size - 1, from_end(*last));
    for (auto place = std::max<std::int64_t>(0, from_end(*first)); place <= end; ++place) {
      const std::int64_t rank = reverse ? size - 1 - place : place;
      const auto& [score, member] = *set.order.find_by_order(static_cast<std::size_t>(rank));
      members.elements.push_back(text(member));
      if (with_scores) members.elements.push_back(text(score_text(score)));
    }
    return members;
  });
}

Reply RedisModel::zscore(Words words) {
  return on<SortedSet>(words[1], [&](const SortedSet& set) {
    const auto place = set.scores.find(words[2]);
    return place == set.scores.end() ? Reply() : text(score_text(place->second));
  });
}

Reply RedisModel::zrank(Words words) {
  return on<SortedSet>(words[1], [&](const SortedSet& set) {
    const auto place = set.scores.find(words[2]);
    if (place == set.scores.end()) return Reply();
    const std::size_t rank = set.order.order_of_key({place->second, place->first});
    return integer(static_cast<std::int64_t>(rank));
  });
}

Reply RedisModel::zremrangebyscore(Words words) {
  const auto least = to_double(words[2]), most = to_double(words[3]);
  if (!least || !most) return error("ERR min or max is not a float");
  return on<SortedSet>(words[1], [&](SortedSet& set) {
    std::int64_t removed = 0;
    for (;; ++removed) {
      const auto place = set.order.lower_bound({*least, ""});
      if (place == set.order.end() || place->first > *most) break;
      set.scores.erase(set.scores.find(place->second));
      set.order.erase(place);
    }
    changed_ = removed > 0;
    return integer(removed);
  });
}

// The others.

Reply RedisModel::publish_command(Words words) {
  return integer(publish ? publish(words[1], words[2]) : 0);
}

Reply RedisModel::time(Words /*words*/) {
  constexpr std::int64_t kMicroseconds = 1'000'000;
  return list_of({text(std::to_string(now_micros_ / kMicroseconds)),
                  text(std::to_string(now_micros_ % kMicroseconds))});
}

Reply RedisModel::ping(Words words) { return words.size() == 1 ? status("PONG") : text(words[1]); }

Reply RedisModel::info(Words /*words*/) {
  return text("# Server\r\nredis_version:7.0.15\r\nrun_id:simulated\r\n");
}

/// EVAL source count key... argument..., or EVALSHA with the SHA-1.
Reply RedisModel::run_script(Words words, bool by_sha) {
  const auto keys = to_integer(words[2]);
  if (!keys) return not_an_integer();
  if (*keys > static_cast<std::int64_t>(words.size()) - 3) {
    return error("ERR Number of keys can't be greater than number of args");
  }
  if (*keys < 0) return error("ERR Number of keys can't be negative");
  if (!scripts_) scripts_ = std::make_unique<LuaScripts>();
  std::string sha1;
  std::string_view known = words[1];
  if (!by_sha) {
    Reply loaded = scripts_->load(words[1]);
    if (loaded.type == Reply::Type::error) return loaded;
    known = sha1 = std::move(loaded.text);
  }
  if (!scripts_->knows(known)) return error("NOSCRIPT No matching script. Please use EVAL.");
  const auto count = static_cast<std::size_t>(*keys);
  return scripts_->run(*this, known, words.subspan(3, count), words.subspan(3 + count));
}

}  // namespace lockbench::simulate
