#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// Transactions of etcd's API, as far as locks need them.
namespace lockbench::etcd {

using LeaseId = std::int64_t;

/// A key that was found. etcd counts revisions for the whole store.
struct Key {
  std::string name;
  std::int64_t created = 0;  ///< the revision in which it was created
  LeaseId lease = 0;
};

/// Compares the revisions in which keys were created; 0 for a key that does not exist.
struct Condition {
  enum class Is { equal, greater };
  std::string key;
  bool prefix = false;  ///< all keys that begin with `key`
  Is is = Is::equal;
  std::int64_t revision = 0;
};

struct Operation {
  enum class Kind { put, get, newest, remove };
  Kind kind = Kind::get;
  std::string key;
  LeaseId lease = 0;               ///< put
  std::int64_t count = 0;          ///< newest: how many keys of the prefix `key`, the newest first
  std::int64_t created_until = 0;  ///< newest: only keys created up to this revision; 0: all
};

struct Txn {
  std::vector<Condition> conditions{};
  std::vector<Operation> then{}, otherwise{};
};

struct TxnResult {
  bool succeeded = false;  ///< the conditions held, so that `then` was done
  std::int64_t revision = 0;
  std::vector<std::vector<Key>> found;  ///< by operation
};

inline Condition exists(std::string key) {
  return {.key = std::move(key), .is = Condition::Is::greater, .revision = 0};
}
inline Condition absent(std::string key) { return {.key = std::move(key)}; }
inline Condition created_in(std::string key, std::int64_t revision) {
  return {.key = std::move(key), .revision = revision};
}
inline Condition none_below(std::string prefix) {
  return {.key = std::move(prefix), .prefix = true};
}
/// No key of the prefix was created before this revision. Fails if the prefix is empty: etcd then
/// compares revision 0.
inline Condition none_below_before(std::string prefix, std::int64_t revision) {
  return {.key = std::move(prefix),
          .prefix = true,
          .is = Condition::Is::greater,
          .revision = revision - 1};
}

inline Operation put(std::string key, LeaseId lease) {
  return {.kind = Operation::Kind::put, .key = std::move(key), .lease = lease};
}
inline Operation get(std::string key) { return {.key = std::move(key)}; }
inline Operation newest(std::string prefix, std::int64_t count, std::int64_t created_until = 0) {
  return {.kind = Operation::Kind::newest,
          .key = std::move(prefix),
          .count = count,
          .created_until = created_until};
}
inline Operation remove(std::string key) {
  return {.kind = Operation::Kind::remove, .key = std::move(key)};
}

/// The end of the range of all keys with this prefix, whose last byte must not be 0xff.
inline std::string end_of_prefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

}  // namespace lockbench::etcd
