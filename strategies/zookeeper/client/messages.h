#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "strategies/duration.h"

// ZooKeeper's messages, as in its zookeeper.jute. Messages are written with their length, and read
// without it. A received packet may hold anything; the error says what is wrong with it.
namespace lockbench::zookeeper {

/// Writes jute, the encoding of ZooKeeper's messages: big-endian numbers; text and lists preceded
/// by their lengths.
class Writer {
 public:
  Writer& put(std::int32_t number) { return put_number(static_cast<std::uint32_t>(number), 4); }
  Writer& put(std::int64_t number) { return put_number(static_cast<std::uint64_t>(number), 8); }
  Writer& put(bool flag) { return put_number(flag ? 1 : 0, 1); }
  Writer& put(std::string_view bytes) {
    put(static_cast<std::int32_t>(bytes.size()));
    bytes_ += bytes;
    return *this;
  }
  Writer& put(const char*) = delete;  // would become a bool

  /// The packet: the length, then all that was written.
  std::string framed() const {
    Writer packet;
    packet.put(std::string_view(bytes_));
    return std::move(packet.bytes_);
  }

 private:
  Writer& put_number(std::uint64_t number, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
      bytes_ += static_cast<char>(number >> shift);
    }
    return *this;
  }

  std::string bytes_;
};

/// Reads jute from any bytes. From the first mismatch on, everything reads as zero or empty, and
/// ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::int32_t int32() { return static_cast<std::int32_t>(number(4)); }
  std::int64_t int64() { return static_cast<std::int64_t>(number(8)); }
  bool boolean() { return number(1) != 0; }
  /// Views into the bytes. Empty for null, which has the length -1.
  std::string_view text();
  std::vector<std::string> texts();

  bool ok() const { return ok_; }
  std::size_t left() const { return rest_.size(); }
  /// True if everything matched and nothing is left.
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t size);
  std::uint64_t number(std::size_t size);
  /// A length, or -1 for null, read as 0.
  std::size_t length();

  std::string_view rest_;
  bool ok_ = true;
};

/// The requests of locks and of the watch.
struct Request {
  enum class Kind {
    make,             ///< a container: the server removes it once its last child is gone
    make_ephemeral,   ///< a node that is deleted with the session
    make_sequential,  ///< likewise, with a number added to its name
    children,         ///< the names of a node's children
    watch_children,   ///< likewise, and watch for their next change
    watch_and_count,  ///< likewise, and how many were ever made
    look,             ///< read a node's metadata and watch it
    exists,
    watch_exists,  ///< likewise, and watch for the next change, such as its creation
    sync,          ///< later requests see all that the ensemble has agreed on so far
    remove,
  };
  Kind kind = Kind::exists;
  std::string path;
};

/// The server's error codes, as in its KeeperException.Code; others have no name here.
enum class Code : std::int32_t {
  ok = 0,
  connection_loss = -4,
  no_node = -101,
  node_exists = -110,
  not_empty = -111,
  session_expired = -112,
  auth_failed = -115,
  session_moved = -118,
  needs_sasl = -124,
};
/// The request may have been carried out; true of unknown codes, too.
bool is_lost(Code code);
bool ends_session(Code code);
/// Success, or one of the refusals that a lock expects.
bool is_usual(Code code);
std::string describe(Code code);

/// An answer. All but the code is empty if the request was refused.
struct Reply {
  Code code = Code::ok;
  std::string path;                   ///< of the new node
  std::int64_t created_by = 0;        ///< czxid: the transaction that made the node; grows
  std::int64_t owner = 0;             ///< the session of an ephemeral node; 0 for others
  std::int64_t made_at_ms = 0;        ///< since 1970, by the server's wall clock
  std::vector<std::string> children;  ///< unordered
  std::uint64_t children_made = 0;    ///< ever, also those that are gone

  bool done() const { return code == Code::ok; }
};

/// The server's name of the operation: "create", "getData" and so on.
std::string_view name_of(Request::Kind kind);
/// Likewise, by its number in a packet.
std::string_view name_of_operation(std::int32_t operation);

/// Numbers of packets other than requests and their answers.
struct Xid {
  static constexpr std::int32_t kEvent = -1, kPing = -2, kAuth = -4, kSetWatches = -8;
};

/// A session as the servers know it: enough to continue it on another connection.
struct Identity {
  std::int64_t id = 0;  ///< 0 for a new session
  std::string password;
  std::int64_t seen = 0;  ///< the latest transaction; servers behind it refuse the session
};

std::string greet(const Identity& session, Duration timeout);
std::string ping();
/// Digest scheme: new nodes belong to this user and password.
std::string authenticate(std::string_view user, std::string_view password);
/// Sets the watches of an earlier connection again. Changes since `seen` arrive as events.
std::string set_watches(std::int64_t seen, std::string_view chroot,
                        std::span<const std::string> paths);
std::string end_session(std::int32_t xid);
/// The request's path is below `chroot`. With `private_nodes`, only the authenticated user may
/// touch its new nodes.
std::string write(std::int32_t xid, const Request& request, std::string_view chroot,
                  bool private_nodes);

template <class T>
using Parsed = tl::expected<T, std::string>;

/// The answer to a greeting.
struct Greeting {
  Duration timeout{};  ///< as granted; zero or less if the session has ended
  std::int64_t id = 0;
  std::string password;
  bool read_only = false;  ///< its server has no quorum
};
Parsed<Greeting> read_greeting(std::string_view packet);

/// Begins every other packet from the server.
struct Header {
  std::int32_t xid = 0;
  std::int64_t transaction = 0;
  Code code = Code::ok;
};
Parsed<Header> read_header(Reader& from);

/// A change of a watched node.
struct NodeEvent {
  bool deleted = false;
  std::string path;
};
Parsed<NodeEvent> read_event(Reader& from, std::string_view chroot);

/// The answer to an accepted request.
Parsed<Reply> read_reply(const Request& request, std::string_view chroot, Reader& from);

/// "3.8.0" from "Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on ...".
std::optional<std::string> version_in(std::string_view answer);

// The nodes of locks.

/// The parent of all nodes of a run: "/lockbench/20261121T012530Z-4f3a9c".
std::string run_path(std::string_view run_id);

/// The node of a key: "/lockbench/<run>/{1}" for "lockbench:<run>:{1}". Characters not allowed in
/// names of nodes are percent-encoded, so that no two keys share a node. Keys of another form
/// belong to the run "-".
std::string node_of_key(std::string_view key);

/// "/a/b" of "/a/b/c"; empty for "/a".
std::string_view parent_of(std::string_view path);

/// The number that ZooKeeper appends to the name of a sequential node, which ends in '-' before it;
/// nothing if there is none. It counts in 32 bits: after 2147483647 comes -2147483648 (Programmer's
/// Guide, "Sequence Nodes").
std::optional<std::int32_t> sequence_of(std::string_view name);

/// Whether the node with number `one` was made before that with `other`, of some that exist at one
/// time: the numbers go round.
bool comes_before(std::int32_t one, std::int32_t other);

/// A contender's place among the children of a lock's node.
struct Place {
  bool there = false;                       ///< its node is among them
  std::optional<std::string_view> ahead{};  ///< the one that it waits for; nothing: it has the lock
};

/// Compares sequence numbers only, as the names' prefixes differ. Children without a number are
/// ignored. `ahead` views into `children`.
Place place_among(std::span<const std::string> children, std::string_view own);

}  // namespace lockbench::zookeeper
