#pragma once

#include <cstdint>
#include <string>

#include "strategies/etcd/client/connection.h"

// The pieces that transactions are made of.
namespace lockbench::etcd {

using Operations = google::protobuf::RepeatedPtrField<etcdserverpb::RequestOp>;
using Comparison = etcdserverpb::Compare::CompareResult;

/// The end of the range of all keys that begin with `prefix`, whose last byte is not 0xff.
inline std::string end_of_prefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

/// The revision in which `key` was created; 0 where there is no such key.
inline void require_created(etcdserverpb::TxnRequest& request, const std::string& key,
                            Comparison comparison, std::int64_t revision) {
  etcdserverpb::Compare& compare = *request.add_compare();
  compare.set_target(etcdserverpb::Compare::CREATE);
  compare.set_result(comparison);
  compare.set_key(key);
  compare.set_create_revision(revision);
}

/// No key below `prefix` is as old as that. There must be one at least: where there is none, etcd
/// compares what a key would have that was never created.
inline void require_none_before(etcdserverpb::TxnRequest& request, const std::string& prefix,
                                std::int64_t revision) {
  require_created(request, prefix, etcdserverpb::Compare::GREATER, revision - 1);
  request.mutable_compare()->rbegin()->set_range_end(end_of_prefix(prefix));
}

inline void require_none(etcdserverpb::TxnRequest& request, const std::string& prefix) {
  require_created(request, prefix, etcdserverpb::Compare::EQUAL, 0);
  request.mutable_compare()->rbegin()->set_range_end(end_of_prefix(prefix));
}

inline void add_put(Operations& operations, const std::string& key, LeaseId lease) {
  etcdserverpb::PutRequest& put = *operations.Add()->mutable_request_put();
  put.set_key(key);
  put.set_lease(lease);
}

inline void add_get(Operations& operations, const std::string& key) {
  etcdserverpb::RangeRequest& get = *operations.Add()->mutable_request_range();
  get.set_key(key);
  get.set_keys_only(true);
}

/// The youngest keys below `prefix`, the very youngest first; those apart that were created after
/// `newest` (0: none).
inline void add_youngest(Operations& operations, const std::string& prefix, std::int64_t count,
                         std::int64_t newest = 0) {
  etcdserverpb::RangeRequest& range = *operations.Add()->mutable_request_range();
  range.set_key(prefix);
  range.set_range_end(end_of_prefix(prefix));
  range.set_limit(count);
  range.set_sort_target(etcdserverpb::RangeRequest::CREATE);
  range.set_sort_order(etcdserverpb::RangeRequest::DESCEND);
  range.set_max_create_revision(newest);
  range.set_keys_only(true);
}

inline void add_delete(Operations& operations, const std::string& key) {
  operations.Add()->mutable_request_delete_range()->set_key(key);
}

/// What the operation of that number found.
inline const auto& found(const etcdserverpb::TxnResponse& response, int operation) {
  return response.responses(operation).response_range().kvs();
}

}  // namespace lockbench::etcd
