#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/duration.h"

namespace lockbench::zookeeper {

/// The requests that locks, and those who watch them, need.
struct Request {
  enum class Kind {
    make,             ///< a container: the server removes it once its last child is gone
    make_ephemeral,   ///< a node that is deleted with the session
    make_sequential,  ///< likewise, with ten digits added to its name
    children,         ///< the names of a node's children
    watch_children,   ///< likewise, and watch for one change of them
    look,             ///< read a node's metadata and watch it
    exists,
    watch_exists,  ///< likewise, and watch for one change: it may be made
    sync,          ///< what follows sees all that the ensemble has agreed on before
    remove,
  };
  Kind kind = Kind::exists;
  std::string path;
};

/// An answer: success, or one of the refusals that matter to a lock.
struct Reply {
  enum class Kind { done, no_node, node_exists, not_empty };
  Kind kind = Kind::done;
  std::string path;                   ///< of the node that was made
  std::int64_t created_by = 0;        ///< czxid: the transaction that made the node; grows
  std::int64_t owner = 0;             ///< the session of an ephemeral node; 0 for others
  std::int64_t made_at_ms = 0;        ///< since 1970, by the server's wall clock
  std::vector<std::string> children;  ///< unordered

  bool done() const { return kind == Kind::done; }
};

/// The server's name of the operation: "create", "getData" and so on.
std::string_view name_of(Request::Kind kind);

// The server's error codes.
/// After which the request may have been carried out, as after a code that is not known.
bool is_lost(std::int32_t code);
bool ends_session(std::int32_t code);
/// Nothing for an unexpected error.
std::optional<Reply::Kind> kind_of(std::int32_t code);
std::string describe(std::int32_t code);

/// Requests that are pipelined, and their answers. Guarded by the session's mutex.
struct Batch {
  explicit Batch(std::size_t size, TimePoint when) : sent_at(when), left(size), answers(size) {}

  struct Answer {
    std::int32_t code = 0;  ///< the server's, or "connection loss"
    Reply reply;
    bool ok() const { return code == 0; }
  };
  const TimePoint sent_at;  ///< before the first was sent
  std::size_t left;         ///< answers to come
  std::vector<Answer> answers;
  std::string why;  ///< the connection was lost
};

}  // namespace lockbench::zookeeper
