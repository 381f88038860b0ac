#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/zookeeper/client/jute.h"
#include "strategies/zookeeper/client/requests.h"

// ZooKeeper's messages, as in its zookeeper.jute. What is written is framed; what is read is the
// packet without its length, and may be anything: the error says what is wrong with it.
namespace lockbench::zookeeper {

/// Numbers of packets that are no requests, and of what belongs to them.
struct Xid {
  static constexpr std::int32_t kEvent = -1, kPing = -2, kAuth = -4, kSetWatches = -8;
};

/// Error codes that mean more than that a request was refused.
struct ErrorCode {
  static constexpr std::int32_t kOk = 0, kConnectionLoss = -4, kNoNode = -101, kNodeExists = -110,
                                kNotEmpty = -111, kSessionExpired = -112, kAuthFailed = -115,
                                kSessionMoved = -118, kNeedsSasl = -124;
};

/// How a session is known to the servers: enough to go on with it on another connection.
struct Identity {
  std::int64_t id = 0;  ///< 0: a new one
  std::string password;
  std::int64_t seen = 0;  ///< the latest transaction: a server that is behind it does not do
};

std::string greet(const Identity& session, Duration timeout);
std::string ping();
/// Digest: the nodes that are made belong to this user and password.
std::string authenticate(std::string_view user, std::string_view password);
/// Watches that were set on another connection. What has happened since `seen` comes as events.
std::string set_watches(std::int64_t seen, std::string_view chroot,
                        std::span<const std::string> paths);
std::string end_session(std::int32_t xid);
/// The request's path below `chroot`. With `private_nodes`, only the user who has authenticated may
/// touch a node that it makes.
std::string write(std::int32_t xid, const Request& request, std::string_view chroot,
                  bool private_nodes);

template <class T>
using Parsed = tl::expected<T, std::string>;

/// The answer to a greeting.
struct Greeting {
  Duration timeout{};  ///< as granted; zero or less: the session has ended
  std::int64_t id = 0;
  std::string password;
  bool read_only = false;  ///< its server has no quorum
};
Parsed<Greeting> read_greeting(std::string_view packet);

/// Stands before every other packet from the server.
struct Header {
  std::int32_t xid = 0;
  std::int64_t transaction = 0;
  std::int32_t error = 0;
};
Parsed<Header> read_header(Reader& from);

/// What has happened to a watched node.
struct NodeEvent {
  bool deleted = false;
  std::string path;
};
Parsed<NodeEvent> read_event(Reader& from, std::string_view chroot);

/// The answer to a request that was not refused.
Parsed<Reply> read_reply(const Request& request, std::string_view chroot, Reader& from);

}  // namespace lockbench::zookeeper
