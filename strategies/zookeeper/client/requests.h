#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/duration.h"

namespace lockbench::zookeeper {

/// What can be asked of a ZooKeeper, as far as locks need it.
struct Request {
  enum class Kind {
    make,             ///< a node that stays
    make_ephemeral,   ///< a node that ends with the session
    make_sequential,  ///< likewise, with ten digits added to its name
    children,         ///< the names of a node's children
    look,             ///< at a node, and watch it
    exists,           ///< whether there is such a node
    remove,
  };
  Kind kind = Kind::exists;
  std::string path;
};

/// As ZooKeeper's documentation calls it.
std::string_view name_of(Request::Kind kind);

/// An answer that says yes, or one of the noes that mean something to a lock.
struct Reply {
  enum class Kind { done, no_node, node_exists, not_empty };
  Kind kind = Kind::done;
  std::string path;                   ///< of what was made
  std::int64_t created_by = 0;        ///< czxid: the transaction that made the node, ever growing
  std::int64_t owner = 0;             ///< the session that an ephemeral node ends with
  std::vector<std::string> children;  ///< in no order

  bool done() const { return kind == Kind::done; }
};

/// Requests that are sent at once, and what has come of them; guarded by its session's mutex.
struct Batch {
  explicit Batch(std::size_t size, TimePoint when) : sent_at(when), left(size), answers(size) {}

  struct Answer {
    int code = 0;  ///< the library's
    Reply reply;
  };
  const TimePoint sent_at;  ///< just before it was
  std::size_t left;         ///< answers to come
  std::vector<Answer> answers;
};

}  // namespace lockbench::zookeeper
