#include "simulate/redis/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "simulate/redis/lua_scripts.h"
#include "simulate/redis/replies.h"

namespace lockbench::simulate {
namespace {

// A key's share of the tables, and of its value's object: what redis_version:7.0 reports for small
// ones, roughly.
constexpr std::size_t kBytesPerKey = 100;

}  // namespace

RedisModel::RedisModel() = default;
RedisModel::~RedisModel() = default;
RedisModel::RedisModel(RedisModel&&) noexcept = default;
RedisModel& RedisModel::operator=(RedisModel&&) noexcept = default;

const RedisModel::Command* RedisModel::find_command(std::string_view name) {
  using Model = RedisModel;
  static const ByText<Command> kCommands{
      {"SET", {&Model::set, 3, 0, true, true}},
      {"SETNX", {&Model::setnx, 3, 3, true, true}},
      {"GET", {&Model::get, 2, 2}},
      {"GETSET", {&Model::getset, 3, 3, true, true}},
      {"DEL", {&Model::del, 2, 0, true}},
      {"UNLINK", {&Model::del, 2, 0, true}},
      {"EXISTS", {&Model::exists, 2, 0}},
      {"EXPIRE", {&Model::expire, 3, 3, true}},
      {"PEXPIRE", {&Model::pexpire, 3, 3, true}},
      {"PEXPIREAT", {&Model::pexpireat, 3, 3, true}},
      {"PTTL", {&Model::pttl, 2, 2}},
      {"INCR", {&Model::incr, 2, 2, true, true}},
      {"HSET", {&Model::hset, 4, 0, true, true}},
      {"HGET", {&Model::hget, 3, 3}},
      {"HDEL", {&Model::hdel, 3, 0, true}},
      {"HEXISTS", {&Model::hexists, 3, 3}},
      {"HINCRBY", {&Model::hincrby, 4, 4, true, true}},
      {"RPUSH", {&Model::rpush, 3, 0, true, true}},
      {"BLPOP", {&Model::blpop, 3, 0, true}},
      {"ZADD", {&Model::zadd, 4, 0, true, true}},
      {"ZREM", {&Model::zrem, 3, 0, true}},
      {"ZRANGE", {&Model::zrange, 4, 5}},
      {"ZREVRANGE", {&Model::zrevrange, 4, 5}},
      {"ZSCORE", {&Model::zscore, 3, 3}},
      {"ZRANK", {&Model::zrank, 3, 3}},
      {"ZREMRANGEBYSCORE", {&Model::zremrangebyscore, 4, 4, true}},
      {"PUBLISH", {&Model::publish_command, 3, 3}},
      {"TIME", {&Model::time, 1, 1}},
      {"PING", {&Model::ping, 1, 2}},
      {"INFO", {&Model::info, 1, 0}},
      {"EVAL", {&Model::eval, 3, 0}},
      {"EVALSHA", {&Model::evalsha, 3, 0}},
  };
  constexpr std::size_t kLongest = 24;
  std::array<char, kLongest> upper{};
  if (name.size() > kLongest) return nullptr;
  std::ranges::transform(name, upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  const auto found = kCommands.find(std::string_view(upper.data(), name.size()));
  return found == kCommands.end() ? nullptr : &found->second;
}

Reply RedisModel::execute(Session& session, Words words, WallTime now) {
  now_micros_ = std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch()).count();
  now_ = now_micros_ / 1000;
  database_ = session.database;
  const std::string_view name = words[0];
  const bool single = words.size() == 1;
  if (equal_words(name, "EXEC")) {
    return single ? run_transaction(session, now) : wrong_count(name);
  }
  if (equal_words(name, "DISCARD")) {
    if (!single) return wrong_count(name);
    if (!session.in_transaction) return error("ERR DISCARD without MULTI");
    session = {.database = session.database};
    return ok();
  }
  if (equal_words(name, "MULTI")) {
    if (!single) return wrong_count(name);
    if (session.in_transaction) return error("ERR MULTI calls can not be nested");
    session.in_transaction = true;
    return ok();
  }
  if (equal_words(name, "SELECT") && words.size() == 2 && !session.in_transaction) {
    constexpr std::int64_t kDatabases = 16;
    const auto number = to_integer(words[1]);
    if (!number) return not_an_integer();
    if (*number < 0 || *number >= kDatabases) return error("ERR DB index is out of range");
    session.database = static_cast<std::uint32_t>(*number);
    return ok();
  }
  if (!session.in_transaction) return run(words);
  if (Reply refused = refuse(words, find_command(name)); !refused.is_nil()) {
    session.aborted = true;
    return refused;
  }
  session.queued.emplace_back(words.begin(), words.end());
  return status("QUEUED");
}

Reply RedisModel::run_transaction(Session& session, WallTime /*now*/) {
  const Session done = std::exchange(session, {.database = session.database});
  if (!done.in_transaction) return error("ERR EXEC without MULTI");
  if (done.aborted) return error("EXECABORT Transaction discarded because of previous errors.");
  std::vector<Reply> replies;
  for (const auto& queued : done.queued) {
    const std::vector<std::string_view> words(queued.begin(), queued.end());
    replies.push_back(run(words));
  }
  return list_of(std::move(replies));
}

Reply RedisModel::refuse(Words words, const Command* command) const {
  if (command == nullptr) {
    std::string args;
    for (const std::string_view word : words.subspan(1)) args += fmt::format("'{}' ", word);
    return error(
        fmt::format("ERR unknown command '{}', with args beginning with: {}", words[0], args));
  }
  const auto count = static_cast<int>(words.size());
  const bool fits = count >= command->least && (command->most == 0 || count <= command->most);
  return fits ? Reply() : wrong_count(words[0]);
}

Reply RedisModel::run(Words words) {
  const Command* const command = find_command(words[0]);
  if (Reply refused = refuse(words, command); !refused.is_nil()) return refused;
  if (memory_limit_ > 0 && command->grows && !make_room()) {
    return error("OOM command not allowed when used memory > 'maxmemory'.");
  }
  if (!command->writes) return (this->*command->execute)(words);
  changed_ = false;
  Reply reply = (this->*command->execute)(words);
  if (changed_ && on_write) {
    on_write({.database = database_, .at = now_, .words = {words.begin(), words.end()}});
  }
  return reply;
}

void RedisModel::apply(const Write& write) {
  const std::vector<std::string_view> words(write.words.begin(), write.words.end());
  database_ = write.database;
  now_ = write.at;
  run(words);
}

void RedisModel::limit_memory(std::size_t bytes, Eviction eviction,
                              std::function<std::uint64_t()> random) {
  memory_limit_ = bytes;
  eviction_ = eviction;
  random_ = std::move(random);
}

bool RedisModel::make_room() {
  // Only what keys and short values take: locks have no others.
  const auto used = [&] {
    std::size_t bytes = 0;
    for (const auto& [number, keys] : databases_) bytes += keys.size() * kBytesPerKey;
    return bytes;
  };
  while (used() >= memory_limit_) {
    if (eviction_ == Eviction::refuse) return false;
    const WallTime now{std::chrono::milliseconds(now_)};
    if (!evict(eviction_ == Eviction::volatile_keys, now)) return false;
  }
  return true;
}

bool RedisModel::evict(bool only_volatile, WallTime now) {
  now_ = std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count();
  std::vector<std::pair<std::uint32_t, std::string>> candidates;
  for (const auto& [number, keys] : databases_) {
    for (const auto& [key, entry] : keys) {
      if (!only_volatile || entry.expires != kNever) candidates.emplace_back(number, key);
    }
  }
  if (candidates.empty() || !random_) return false;
  // The order of a hash table is not a promise.
  std::ranges::sort(candidates);
  const auto& [number, key] = candidates[random_() % candidates.size()];
  const std::uint32_t before = std::exchange(database_, number);
  remove(key);
  if (on_write) on_write({.database = number, .at = now_, .words = {"DEL", key}});
  database_ = before;
  return true;
}

void RedisModel::forget_scripts() { scripts_.reset(); }

std::size_t RedisModel::keys() const {
  std::size_t count = 0;
  for (const auto& [number, keys] : databases_) count += keys.size();
  return count;
}

std::vector<std::string> RedisModel::names(WallTime now) const {
  const auto time = std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count();
  std::vector<std::string> names;
  for (const auto& [number, keys] : databases_) {
    for (const auto& [key, entry] : keys) {
      if (entry.expires >= time) names.push_back(key);
    }
  }
  std::ranges::sort(names);
  return names;
}

void RedisModel::remove(std::string_view key) {
  Keys& keys = database();
  if (const auto found = keys.find(key); found != keys.end()) keys.erase(found);
}

}  // namespace lockbench::simulate
