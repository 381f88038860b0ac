#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/rpc.pb.h"

// Reads etcd's answers. Protobuf vouches for their types only: what does not fit the request is
// nothing.
namespace lockbench::etcd {

std::vector<Key> read_keys(const etcdserverpb::RangeResponse& response);

/// An answer for each operation that was done, of its kind and within its bounds.
std::optional<TxnResult> read_txn(const Txn& txn, const etcdserverpb::TxnResponse& response);

std::optional<GrantedLease> read_grant(const etcdserverpb::LeaseGrantResponse& response);

/// Whether gRPC can carry it; with other bytes it ends the program.
bool is_token(std::string_view text);

}  // namespace lockbench::etcd
