#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/store.h"

// Declared only, as gRPC's headers are slow to compile.
namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf
namespace grpc {
class Status;
}  // namespace grpc

namespace lockbench::etcd {

class Completions;
class Link;
class Links;
struct Txn;

/// A call of etcd's API, with the types of its messages.
template <class Request, class Response>
struct Method {
  std::string_view name;
};

/// One etcd cluster; the hosts are its members. With https://, a query as in TlsSettings.
using Endpoint = Url;
/// As parse_url().
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

using LeaseId = std::int64_t;

/// A key that was found. etcd counts revisions for the whole store.
struct Key {
  std::string name;
  std::int64_t created = 0;  ///< the revision in which it was created
  LeaseId lease = 0;
  std::int64_t changed = 0;  ///< the revision in which it was written
  std::string value{};       ///< if it was asked for
};

struct TxnResult {
  bool succeeded = false;  ///< the conditions held, so that `then` was done
  std::int64_t revision = 0;
  std::vector<std::vector<Key>> found;  ///< by operation
};

struct GrantedLease {
  LeaseId id = 0;
  Duration ttl{};  ///< as the server granted it: not less than was asked for
};

/// One link to one etcd member; used by one thread. Constructing it does not connect; a call
/// connects first if there is no connection, to the next member in turn after a failure. Reports
/// every command to its Env. No call takes longer than the command timeout (and as long again to
/// connect); a stop ends it immediately. A call that begins after the stop, to clean up, gets a
/// part of Timeouts::after_stop. `lock` is the lock's key, for the Env.
class Connection {
 public:
  Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env);
  Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env, Links& links);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  StoreResult<void> connect(const std::stop_token& stop = {});

  StoreResult<GrantedLease> grant_lease(std::int64_t seconds, std::string_view lock,
                                        const std::stop_token& stop = {});
  /// Removes the lease and every key on it. Succeeds if the lease is already gone.
  StoreResult<void> revoke_lease(LeaseId lease, std::string_view lock,
                                 const std::stop_token& stop = {});
  /// Nothing if a lease that it names is gone; it then took no effect.
  StoreResult<std::optional<TxnResult>> transact(std::string_view lock, const Txn& txn,
                                                 const std::stop_token& stop = {});
  /// Returns how many keys were deleted.
  StoreResult<std::int64_t> remove_key(std::string_view lock, const std::string& key,
                                       const std::stop_token& stop = {}) {
    return remove_range(lock, key, {}, stop);
  }
  StoreResult<std::int64_t> remove_prefix(std::string_view lock, const std::string& prefix,
                                          const std::stop_token& stop = {});
  /// The keys with this prefix, oldest first, at most `limit` (0: all).
  StoreResult<std::vector<Key>> list(std::string_view lock, const std::string& prefix,
                                     std::int64_t limit = 0, const std::stop_token& stop = {});
  /// `here`: as the present member has it, which may be old.
  StoreResult<std::optional<Key>> read(std::string_view lock, const std::string& key,
                                       const std::stop_token& stop = {}, bool here = false);
  StoreResult<StoreFacts> facts();

  /// Waits until the key `watched` does not exist. False if `until` or a stop came first. Reported
  /// as a command that blocks.
  StoreResult<bool> await_deletion(std::string_view lock, const std::string& watched,
                                   TimePoint until, const std::stop_token& stop);

  void close() noexcept;
  /// All members.
  const std::string& display() const { return display_; }
  /// The failure of a command whose answer does not fit it. Closes the connection.
  tl::unexpected<StoreError> not_understood(std::string_view name, std::string_view expected);
  /// The member that is used now.
  const std::string& address() const { return address_; }

 protected:
  // For derived clients with further calls: the renewal of leases, and the watch.
  struct Call {
    std::string_view name, lock;
    const std::stop_token& stop;
  };

  /// Connects, sends the request and waits for the response. False if the request's object does not
  /// exist.
  template <class Request, class Response>
  StoreResult<bool> call(const Method<Request, Response>& method, std::string_view lock,
                         const std::stop_token& stop, const Request& request, Response& response) {
    return send({method.name, lock, stop}, request, response);
  }
  CommandInfo info_of(const Call& call, bool blocks = false) const {
    return {.store = "etcd",
            .endpoint = address_,
            .name = call.name,
            .key = call.lock,
            .blocks = blocks};
  }
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return failure_at(address_, kind, why);
  }
  /// Null without a connection.
  Link* link() { return link_.get(); }
  /// Its number: each has another.
  std::uint64_t link_number() const { return opened_; }
  /// From the login; empty without one.
  const std::string& token() const { return token_; }
  /// The next call logs in again.
  void forget_token() { token_.clear(); }
  /// Closes the connection; the next one is to the next member.
  void leave_member() noexcept;
  Env& env() { return env_; }

 private:
  /// Opens a link to the present member, or says why that failed.
  StoreResult<void> open(Duration limit, const std::stop_token& stop);
  StoreResult<bool> send(const Call& call, const google::protobuf::MessageLite& request,
                         google::protobuf::MessageLite& response);
  /// Waits until the key is `gone`, or the call ends; returns the call's status.
  grpc::Status watch(const Call& call, const std::string& watched, Duration longest, bool& gone);
  StoreResult<void> authenticate(const std::stop_token& stop);
  StoreResult<bool> exchange(const Call& call, const google::protobuf::MessageLite& request,
                             google::protobuf::MessageLite& response);
  StoreResult<std::int64_t> remove_range(std::string_view lock, const std::string& key,
                                         const std::string& end, const std::stop_token& stop);
  const HostPort& member() const { return endpoint_.hosts[next_ % endpoint_.hosts.size()]; }

  const Endpoint endpoint_;
  const std::string display_;
  Duration last_moment() const { return timeouts_.after_stop * 2 / 5; }

  const Timeouts timeouts_;
  Env& env_;
  Links& links_;
  std::uint64_t opened_ = 0;  ///< links so far
  std::size_t next_ = 0;      ///< counts up; modulo the number of members, the current or next one
  std::string address_;       ///< that member's
  std::shared_ptr<Completions> completions_;  ///< as in Links::Order
  std::unique_ptr<Link> link_;                ///< null without a connection
  std::string token_;                         ///< from the login; empty until it is needed
};

}  // namespace lockbench::etcd
