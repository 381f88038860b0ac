#include <algorithm>

#include "tests/support/fake_redis.h"
#include "tests/support/fake_replies.h"

namespace lockbench::redis {

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
