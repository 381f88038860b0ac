#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/duration.h"

namespace lockbench::zookeeper {

/// The requests that locks need.
struct Request {
  enum class Kind {
    make,             ///< a persistent node
    make_ephemeral,   ///< a node that is deleted with the session
    make_sequential,  ///< likewise, with ten digits added to its name
    children,         ///< the names of a node's children
    look,             ///< read a node's metadata and watch it
    exists,           ///< also used as a ping
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
  std::int64_t owner = 0;             ///< the session of an ephemeral node
  std::vector<std::string> children;  ///< unordered

  bool done() const { return kind == Kind::done; }
};

/// The server's name of the operation: "create", "getData" and so on.
std::string_view name_of(Request::Kind kind);

// The client library's error codes.
/// After which the request may have been carried out.
bool is_lost(int code);
bool ends_session(int code);
bool came_from_server(int code);
/// Nothing for an unexpected error.
std::optional<Reply::Kind> kind_of(int code);

/// Requests that are pipelined, and their answers. Guarded by the session's mutex.
struct Batch {
  explicit Batch(std::size_t size, TimePoint when) : sent_at(when), left(size), answers(size) {}

  struct Answer {
    int code = 0;  ///< the client library's error code
    Reply reply;
  };
  const TimePoint sent_at;  ///< before the first was sent
  std::size_t left;         ///< answers to come
  std::vector<Answer> answers;
};

}  // namespace lockbench::zookeeper
