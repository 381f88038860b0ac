#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/rpc.pb.h"

// The messages of etcd's API that locks need: making requests, and checking answers. Protobuf
// checks the types only; from an answer that does not fit its request nothing is read.
namespace lockbench::etcd {

inline constexpr Method<etcdserverpb::RangeRequest, etcdserverpb::RangeResponse> kRange{"Range"};
inline constexpr Method<etcdserverpb::DeleteRangeRequest, etcdserverpb::DeleteRangeResponse>
    kDeleteRange{"DeleteRange"};
inline constexpr Method<etcdserverpb::TxnRequest, etcdserverpb::TxnResponse> kTxn{"Txn"};
inline constexpr Method<etcdserverpb::LeaseGrantRequest, etcdserverpb::LeaseGrantResponse>
    kLeaseGrant{"LeaseGrant"};
inline constexpr Method<etcdserverpb::LeaseRevokeRequest, etcdserverpb::LeaseRevokeResponse>
    kLeaseRevoke{"LeaseRevoke"};
inline constexpr Method<etcdserverpb::LeaseTimeToLiveRequest, etcdserverpb::LeaseTimeToLiveResponse>
    kLeaseTimeToLive{"LeaseTimeToLive"};
inline constexpr Method<etcdserverpb::AuthenticateRequest, etcdserverpb::AuthenticateResponse>
    kAuthenticate{"Authenticate"};
inline constexpr Method<etcdserverpb::StatusRequest, etcdserverpb::StatusResponse> kStatus{
    "Status"};
// Streams.
inline constexpr Method<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse> kWatch{"Watch"};
inline constexpr Method<etcdserverpb::LeaseKeepAliveRequest, etcdserverpb::LeaseKeepAliveResponse>
    kLeaseKeepAlive{"LeaseKeepAlive"};

struct Txn {
  std::vector<etcdserverpb::Compare> conditions{};
  std::vector<etcdserverpb::RequestOp> then{}, otherwise{};
};
etcdserverpb::TxnRequest to_request(const Txn& txn);

// Conditions compare the revisions in which keys were created, or the latest write.
etcdserverpb::Compare exists(const std::string& key);
etcdserverpb::Compare absent(const std::string& key);
etcdserverpb::Compare created_in(const std::string& key, std::int64_t revision);
etcdserverpb::Compare changed_in(const std::string& key, std::int64_t revision);
etcdserverpb::Compare none_below(const std::string& prefix);
/// No key of the prefix was created before this revision. Fails if the prefix is empty: etcd then
/// compares revision 0.
etcdserverpb::Compare none_below_before(const std::string& prefix, std::int64_t revision);

etcdserverpb::RequestOp put(const std::string& key, LeaseId lease);
/// Without a lease.
etcdserverpb::RequestOp put_value(const std::string& key, const std::string& value);
etcdserverpb::RequestOp get(const std::string& key);
/// `count` keys of the prefix, the newest first, that were created up to this revision (0: all).
etcdserverpb::RequestOp newest(const std::string& prefix, std::int64_t count,
                               std::int64_t created_until = 0);
etcdserverpb::RequestOp remove(const std::string& key);

/// The end of the range of all keys with this prefix, whose last byte must not be 0xff.
std::string end_of_prefix(std::string prefix);

/// Keys of the request's range, at most as many as it asks for.
std::optional<std::vector<Key>> read_keys(const etcdserverpb::RangeRequest& asked,
                                          const etcdserverpb::RangeResponse& response);
/// An answer for each operation that was done, of its kind and within its bounds.
std::optional<TxnResult> read_txn(const Txn& txn, const etcdserverpb::TxnResponse& response);
std::optional<GrantedLease> read_grant(const etcdserverpb::LeaseGrantResponse& response);
/// Whether gRPC can carry it: other bytes make gRPC abort the program.
bool is_token(std::string_view text);

}  // namespace lockbench::etcd
