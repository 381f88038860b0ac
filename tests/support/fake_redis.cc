#include "tests/support/fake_redis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "tests/support/fake_replies.h"

namespace lockbench::redis {
namespace {

using Words = std::vector<std::string>;

std::string as_line(Words command) {
  if (is_script(command)) {
    if (const Script* script = script_of(command)) command[1] = script->name;
  }
  return fmt::format("{}", fmt::join(command, " "));
}

}  // namespace

std::vector<std::string> FakeRedis::take_commands() { return std::exchange(commands_, {}); }

std::optional<std::string> FakeRedis::value(const std::string& key) {
  const Entry* entry = find(key);
  return entry == nullptr ? std::nullopt : std::optional(entry->value);
}

std::optional<Duration> FakeRedis::ttl(const std::string& key) {
  const Entry* entry = find(key);
  if (entry == nullptr || entry->expires == WallTime::max()) return std::nullopt;
  return entry->expires - clock_.wall_now();
}

void FakeRedis::set(const std::string& key, std::string value, std::optional<Duration> ttl) {
  entries_[key] = {.value = std::move(value),
                   .expires = ttl ? clock_.wall_now() + *ttl : WallTime::max()};
}

StoreResult<Reply> FakeRedis::arrive(const Words& command, Transaction& transaction) {
  const std::scoped_lock lock(mutex_);
  const auto failure = failures_.find(++arrivals_);
  const bool fails = failure != failures_.end();
  if (fails && failure->second == Failure::not_sent) {
    return tl::unexpected(StoreError{StoreError::Kind::not_sent, "told to break"});
  }
  if (fails && failure->second == Failure::request_lost) {
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, "told to lose the request"});
  }
  const std::string line = as_line(command);
  commands_.push_back(line);
  if (fails && failure->second == Failure::rejected) {
    transaction.aborted = transaction.open;
    return tl::unexpected(StoreError{StoreError::Kind::rejected, "ERR told to reject"});
  }
  if (on_arrival_) on_arrival_(line);
  Reply reply = execute(command, transaction);
  if (fails) {
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, "told to lose the answer"});
  }
  if (reply.type == Reply::Type::error) {
    return tl::unexpected(StoreError{StoreError::Kind::rejected, reply.text, reply.code});
  }
  return reply;
}

Reply FakeRedis::execute(const Words& command, Transaction& transaction) {
  if (command[0] == "MULTI") {
    transaction = {.open = true};
    return ok();
  }
  if (command[0] == "EXEC") {
    const Transaction done = std::exchange(transaction, {});
    if (!done.open) return error("ERR EXEC without MULTI");
    if (done.aborted) return error("EXECABORT Transaction discarded because of previous errors.");
    Reply replies;
    replies.type = Reply::Type::array;
    for (const Words& queued : done.queued) replies.elements.push_back(execute_one(queued));
    return replies;
  }
  if (!transaction.open) return execute_one(command);
  transaction.queued.push_back(command);
  return text(Reply::Type::status, "QUEUED");
}

Reply FakeRedis::execute_one(const Words& command) {
  const std::string& name = command[0];
  if (is_script(command)) return execute_script(command);
  if (name == "INFO") return text(Reply::Type::string, "# Server\r\nredis_version:7.0.15\r\n");
  if (name == "DEL" || name == "UNLINK") return remove(command);

  const std::string& key = command.at(1);
  const Entry* entry = find(key);
  if (name == "SET") return execute_set(command);
  if (name == "SETNX") {
    if (entry != nullptr) return integer(0);
    set(key, command.at(2));
    return integer(1);
  }
  if (name == "GET" || name == "GETSET") {
    Reply seen = entry == nullptr ? Reply() : text(Reply::Type::string, entry->value);
    if (name == "GETSET") set(key, command.at(2));
    return seen;
  }
  if (name == "EXPIRE") return expire(key, std::chrono::seconds(std::stoll(command.at(2))));
  if (name == "PEXPIRE") return expire(key, std::chrono::milliseconds(std::stoll(command.at(2))));
  if (name == "PTTL") {
    if (entry == nullptr) return integer(-2);
    const auto left = ttl(key);
    return integer(left ? ceil_milliseconds(*left) : -1);
  }
  return error("ERR unknown command '" + name + "'");
}

/// SET key value [NX] [PX milliseconds] [EX seconds] [GET]
Reply FakeRedis::execute_set(const Words& command) {
  const std::string& key = command.at(1);
  std::optional<Duration> ttl;
  bool only_new = false, wants_old = false;
  for (std::size_t i = 3; i < command.size(); ++i) {
    if (command[i] == "NX") {
      only_new = true;
    } else if (command[i] == "GET") {
      wants_old = true;
    } else if ((command[i] == "PX" || command[i] == "EX") && i + 1 < command.size()) {
      const int unit = command[i] == "PX" ? 1 : 1000;
      ttl = std::chrono::milliseconds(std::stoll(command[++i]) * unit);
      if (*ttl <= Duration::zero()) return error("ERR invalid expire time in 'set' command");
    } else {
      return error("ERR syntax error");
    }
  }
  const Entry* entry = find(key);
  if (only_new && entry != nullptr) return {};
  Reply old = entry == nullptr ? Reply() : text(Reply::Type::string, entry->value);
  set(key, command.at(2), ttl);
  return wants_old ? old : ok();
}

Reply FakeRedis::expire(const std::string& key, Duration ttl) {
  Entry* entry = find(key);
  if (entry == nullptr) return integer(0);
  entry->expires = clock_.wall_now() + ttl;
  return integer(1);
}

Reply FakeRedis::remove(const Words& command) {
  std::int64_t removed = 0;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (find(command[i]) == nullptr) continue;
    entries_.erase(command[i]);
    ++removed;
  }
  return integer(removed);
}

FakeRedis::Entry* FakeRedis::find(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  if (found->second.expires > clock_.wall_now()) return &found->second;
  entries_.erase(found);
  return nullptr;
}

/// EVALSHA sha 1 key argument..., or EVAL with the source in its place
Reply FakeRedis::execute_script(const Words& command) {
  const Script* script = script_of(command);
  if (script == nullptr) return error("ERR not a script of this fake's");
  const std::string name(script->name);
  if (command[0] == "EVAL") scripts_.insert(name);
  if (!scripts_.contains(name)) return error("NOSCRIPT No matching script. Please use EVAL.");

  const std::string& key = command.at(3);
  const auto ttl = [&] { return std::chrono::milliseconds(std::stoll(command.back())); };
  if (script == &scripts::fenced_acquire) {
    return acquire_fenced(key, command.at(4), command.at(5), ttl());
  }
  const std::string& owner = command.at(4);
  if (script == &scripts::reentrant_acquire) return acquire_reentrant(key, owner, ttl());
  if (script == &scripts::reentrant_release) {
    return release_reentrant(key, owner, std::chrono::milliseconds(std::stoll(command.at(5))));
  }
  const Entry* entry = find(key);
  const bool in_hash = script == &scripts::reentrant_renew;
  const bool mine =
      entry != nullptr && (in_hash ? entry->counts.contains(owner) : entry->value == owner);
  if (!mine) return integer(0);
  if (script == &scripts::release_if_token) return remove({"DEL", key});
  return expire(key, ttl());
}

Reply FakeRedis::acquire_reentrant(const std::string& key, const std::string& owner, Duration ttl) {
  Entry* entry = find(key);
  if (entry != nullptr && !entry->counts.contains(owner)) return execute_one({"PTTL", key});
  if (entry == nullptr) entry = &(entries_[key] = Entry{.value = "a hash"});
  ++entry->counts[owner];
  expire(key, ttl);
  return {};
}

Reply FakeRedis::release_reentrant(const std::string& key, const std::string& owner, Duration ttl) {
  Entry* entry = find(key);
  if (entry == nullptr || !entry->counts.contains(owner)) return {};
  if (--entry->counts[owner] == 0) return remove({"DEL", key});
  expire(key, ttl);
  return integer(0);
}

Reply FakeRedis::acquire_fenced(const std::string& key, const std::string& counter,
                                const std::string& token, Duration ttl) {
  if (find(key) != nullptr) return {};
  set(key, token, ttl);
  const std::int64_t last = value(counter) ? std::stoll(*value(counter)) : 0;
  set(counter, std::to_string(last + 1), std::max<Duration>(std::chrono::hours(24), 2 * ttl));
  return integer(last + 1);
}

}  // namespace lockbench::redis
