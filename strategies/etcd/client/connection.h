#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/etcd/client/endpoint.h"
#include "strategies/etcd/client/rpc.pb.h"

// Named only, as else whoever uses a connection would have to read all of gRPC.
namespace grpc {
class ClientContext;
class Status;
}  // namespace grpc

namespace lockbench::etcd {

using LeaseId = std::int64_t;

struct GrantedLease {
  LeaseId id = 0;
  Duration ttl{};  ///< what the server granted: not less than was asked for
};

/// One channel of its own to one etcd; used by one thread. Constructing it does not connect;
/// whatever needs the server connects first if there is no connection, to the next member in turn
/// after one that failed. Reports every command to its Env. No call takes longer than the command
/// timeout (and as long again to connect); a stop ends it at once. One that begins after the stop,
/// in a clean-up, is given kLastMoment.
class Connection {
 public:
  static constexpr Duration kLastMoment = std::chrono::milliseconds(40);

  Connection(Endpoint endpoint, Duration command_timeout, Env& env);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  StoreResult<void> connect(const std::stop_token& stop = {});

  StoreResult<GrantedLease> grant_lease(std::int64_t seconds, std::string_view key,
                                        const std::stop_token& stop = {});
  /// Whatever was put under the lease goes with it. Fine if there is no such lease any more.
  StoreResult<void> revoke_lease(LeaseId lease, std::string_view key,
                                 const std::stop_token& stop = {});
  /// Nothing: a lease that it names is gone; it took no effect. `name` is what it is called in
  /// reports.
  StoreResult<std::optional<etcdserverpb::TxnResponse>> transact(
      std::string_view name, std::string_view key, const etcdserverpb::TxnRequest& request,
      const std::stop_token& stop = {});
  /// How many keys were deleted.
  StoreResult<std::int64_t> remove(std::string_view key,
                                   const etcdserverpb::DeleteRangeRequest& request,
                                   const std::stop_token& stop = {});
  StoreResult<etcdserverpb::RangeResponse> range(std::string_view key,
                                                 const etcdserverpb::RangeRequest& request,
                                                 const std::stop_token& stop = {});
  StoreResult<etcdserverpb::StatusResponse> status(const std::stop_token& stop = {});

  /// Waits until `watched` is not there, or is no more. False if `until` or a stop came first. For
  /// the lock of that `key`: reported as a command that blocks.
  StoreResult<bool> await_deletion(std::string_view key, const std::string& watched,
                                   TimePoint until, const std::stop_token& stop);

  void close() noexcept;
  /// All members.
  const std::string& display() const { return display_; }
  /// The member that is asked now.
  const std::string& address() const { return address_; }

 private:
  friend class KeepAliveStream;
  struct Channel;
  struct Call {
    std::string_view name, key;
    const std::stop_token& stop;
  };
  using Send = std::function<grpc::Status(grpc::ClientContext*)>;

  /// Makes a channel to the present member, or says why there is none.
  StoreResult<void> open(Duration limit, const std::stop_token& stop);
  StoreResult<bool> exists(std::string_view key, const std::string& wanted,
                           const std::stop_token& stop);
  StoreResult<void> authenticate(const std::stop_token& stop);
  /// False: what it names is not there.
  StoreResult<bool> call(const Call& call, const Send& send);
  StoreResult<bool> exchange(const Call& call, const Send& send);
  CommandInfo told(const Call& call, bool blocks = false) const;
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const;
  const Address& member() const { return endpoint_.members[next_ % endpoint_.members.size()]; }

  const Endpoint endpoint_;
  const std::string display_;
  const Duration timeout_;
  Env& env_;
  std::size_t next_ = 0;              ///< the member that is, or is to be, connected to
  std::string address_;               ///< that member's, as shown
  std::unique_ptr<Channel> channel_;  ///< null without a connection
  std::string token_;                 ///< of the user; empty until it is needed
};

}  // namespace lockbench::etcd
