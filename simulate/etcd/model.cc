#include "simulate/etcd/model.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace lockbench::simulate {
namespace {

using namespace std::chrono_literals;
using etcdserverpb::Compare;
using etcdserverpb::RangeRequest;
using etcdserverpb::RequestOp;

// Those of a member of testbed's, which has heartbeats of 50 ms and elections of 500 ms: etcd's
// lessor rounds one and a half times the latter up to seconds, and a new leader adds it once.
constexpr std::int64_t kShortestTtl = 1;
constexpr Duration kElection = 500ms;

grpc::Status no_lease() {
  return {grpc::StatusCode::NOT_FOUND, "etcdserver: requested lease not found"};
}

/// By its form: a transaction is as its most expensive operation, whether that is done or not.
template <class Request>
EtcdModel::Path path_of(const Request& request) {
  using enum EtcdModel::Path;
  if constexpr (std::is_same_v<Request, RangeRequest>) {
    return request.serializable() ? here : quorum;
  } else if constexpr (std::is_same_v<Request, RequestOp>) {
    return request.has_request_range() ? path_of(request.request_range()) : log;
  } else if constexpr (std::is_same_v<Request, etcdserverpb::TxnRequest>) {
    EtcdModel::Path longest = here;
    for (const auto* const branch : {&request.success(), &request.failure()}) {
      for (const RequestOp& operation : *branch) longest = std::max(longest, path_of(operation));
    }
    return longest;
  } else {
    return std::is_same_v<Request, etcdserverpb::LeaseKeepAliveRequest> ? here : log;
  }
}

}  // namespace

template <class Request, class Response>
EtcdModel::Answer EtcdModel::run(const std::string& bytes,
                                 grpc::Status (EtcdModel::*call)(const Request&, Response&)) {
  Request request;
  Response response;
  if (!request.ParseFromString(bytes)) {
    return {{grpc::StatusCode::INTERNAL, "grpc: error unmarshalling request"}};
  }
  Answer answer{.status = (this->*call)(request, response), .path = path_of(request)};
  answer.waits = std::exchange(waits_, false);
  answer.response = response.SerializeAsString();
  return answer;
}

EtcdModel::Answer EtcdModel::execute(std::string_view method, const std::string& request,
                                     TimePoint now) {
  now_ = now;
  if (method == etcd::kTxn.name) return run(request, &EtcdModel::transact);
  if (method == etcd::kRange.name) return run(request, &EtcdModel::range);
  if (method == etcd::kDeleteRange.name) return run(request, &EtcdModel::remove);
  if (method == etcd::kLeaseKeepAlive.name) return run(request, &EtcdModel::keep_alive);
  if (method == etcd::kLeaseGrant.name) return run(request, &EtcdModel::grant);
  if (method == etcd::kLeaseRevoke.name) return run(request, &EtcdModel::revoke);
  return {{grpc::StatusCode::UNIMPLEMENTED, "unknown method " + std::string(method)}};
}

// Keys.

std::pair<EtcdModel::Values::iterator, EtcdModel::Values::iterator> EtcdModel::of(
    const std::string& key, const std::string& until) {
  const auto first = values_.lower_bound(key);
  if (!until.empty()) return {first, values_.lower_bound(std::max(key, until))};
  return {first, values_.upper_bound(key)};
}

grpc::Status EtcdModel::range(const RangeRequest& request, etcdserverpb::RangeResponse& response) {
  const auto [first, last] = of(request.key(), request.range_end());
  std::vector<Values::const_iterator> found;
  for (auto at = first; at != last; ++at) {
    const std::int64_t until = request.max_create_revision();
    if (until == 0 || at->second.created <= until) found.push_back(at);
  }
  const bool falls = request.sort_order() == RangeRequest::DESCEND;
  if (request.sort_target() == RangeRequest::CREATE) {
    std::ranges::stable_sort(found, [&](const auto& a, const auto& b) {
      const std::int64_t left = a->second.created, right = b->second.created;
      return falls ? left > right : left < right;
    });
  }
  const auto most = static_cast<std::size_t>(request.limit());
  response.set_more(most > 0 && found.size() > most);
  if (response.more()) found.resize(most);
  for (const auto& one : found) {
    etcdserverpb::KeyValue& value = *response.add_kvs();
    value.set_key(one->first);
    value.set_create_revision(one->second.created);
    value.set_mod_revision(one->second.changed);
    value.set_lease(one->second.lease);
    if (!request.keys_only()) value.set_value(one->second.text);
  }
  response.mutable_header()->set_revision(revision_);
  return {};
}

void EtcdModel::put(const etcdserverpb::PutRequest& request) {
  Value& value = values_[request.key()];
  if (value.lease != 0) leases_.at(value.lease).keys.erase(request.key());
  value.changed = revision_ + 1;
  if (value.created == 0) value.created = value.changed;
  value.lease = request.lease();
  value.text = request.value();
  if (value.lease != 0) leases_.at(value.lease).keys.insert(request.key());
  changed_ = true;
}

std::int64_t EtcdModel::erase(Values::iterator first, Values::iterator last) {
  std::int64_t count = 0;
  for (; first != last; first = values_.erase(first), ++count) {
    const etcd::LeaseId lease = first->second.lease;
    if (lease != 0) leases_.at(lease).keys.erase(first->first);
    deleted_.push_back(first->first);
  }
  changed_ |= count > 0;
  return count;
}

void EtcdModel::commit() { revision_ += std::exchange(changed_, false) ? 1 : 0; }

grpc::Status EtcdModel::remove(const etcdserverpb::DeleteRangeRequest& request,
                               etcdserverpb::DeleteRangeResponse& response) {
  const auto [first, last] = of(request.key(), request.range_end());
  response.set_deleted(erase(first, last));
  commit();
  return {};
}

bool EtcdModel::holds(const Compare& condition) {
  const bool of_change = condition.target() == Compare::MOD;
  const std::int64_t right = of_change ? condition.mod_revision() : condition.create_revision();
  const auto fits = [&](const Value& value) {
    const std::int64_t left = of_change ? value.changed : value.created;
    return condition.result() == Compare::GREATER ? left > right : left == right;
  };
  const auto [first, last] = of(condition.key(), condition.range_end());
  // Keys that do not exist have the revisions 0.
  if (first == last) return fits(Value());
  return std::all_of(first, last, [&](const auto& one) { return fits(one.second); });
}

grpc::Status EtcdModel::transact(const etcdserverpb::TxnRequest& request,
                                 etcdserverpb::TxnResponse& response) {
  const bool succeeds = std::ranges::all_of(
      request.compare(), [&](const Compare& condition) { return holds(condition); });
  const auto& operations = succeeds ? request.success() : request.failure();
  const bool can_put = std::ranges::all_of(operations, [&](const RequestOp& operation) {
    const etcd::LeaseId lease = operation.request_put().lease();
    return lease == 0 || leases_.contains(lease);
  });
  if (!can_put) return no_lease();
  for (const RequestOp& operation : operations) {
    etcdserverpb::ResponseOp& done = *response.add_responses();
    if (operation.has_request_put()) {
      put(operation.request_put());
      done.mutable_response_put();
    } else if (operation.has_request_delete_range()) {
      const auto& removal = operation.request_delete_range();
      const auto [first, last] = of(removal.key(), removal.range_end());
      done.mutable_response_delete_range()->set_deleted(erase(first, last));
    } else {
      range(operation.request_range(), *done.mutable_response_range());
    }
  }
  commit();
  response.set_succeeded(succeeds);
  response.mutable_header()->set_revision(revision_);
  return {};
}

std::vector<std::string> EtcdModel::names() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : values_) names.push_back(key);
  return names;
}

// Leases.

grpc::Status EtcdModel::grant(const etcdserverpb::LeaseGrantRequest& request,
                              etcdserverpb::LeaseGrantResponse& response) {
  const std::int64_t seconds = std::max(request.ttl(), kShortestTtl);
  leases_[++latest_lease_] = {.seconds = seconds, .expires = now_ + std::chrono::seconds(seconds)};
  response.set_id(latest_lease_);
  response.set_ttl(seconds);
  return {};
}

grpc::Status EtcdModel::revoke(const etcdserverpb::LeaseRevokeRequest& request,
                               etcdserverpb::LeaseRevokeResponse& /*response*/) {
  const auto lease = leases_.find(request.id());
  if (lease == leases_.end()) return no_lease();
  end(lease);
  return {};
}

grpc::Status EtcdModel::keep_alive(const etcdserverpb::LeaseKeepAliveRequest& request,
                                   etcdserverpb::LeaseKeepAliveResponse& response) {
  response.set_id(request.id());
  const auto lease = leases_.find(request.id());
  // Without a TTL: it is gone.
  if (lease == leases_.end()) return {};
  waits_ = lease->second.expires <= now_;
  if (waits_) return {};
  lease->second.expires = now_ + std::chrono::seconds(lease->second.seconds);
  response.set_ttl(lease->second.seconds);
  return {};
}

void EtcdModel::end(std::map<etcd::LeaseId, Lease>::iterator lease) {
  for (const std::string& key : std::exchange(lease->second.keys, {})) {
    const auto [first, last] = of(key, {});
    erase(first, last);
  }
  commit();
  leases_.erase(lease);
}

void EtcdModel::expire(TimePoint now) {
  for (auto lease = leases_.begin(); lease != leases_.end();) {
    const auto next = std::next(lease);
    if (lease->second.expires <= now) end(lease);
    lease = next;
  }
}

void EtcdModel::lead(TimePoint now) {
  for (auto& [id, lease] : leases_) {
    lease.expires = now + kElection + std::chrono::seconds(lease.seconds);
  }
}

void EtcdModel::lose_all() {
  const etcd::LeaseId latest = latest_lease_;
  *this = EtcdModel();
  latest_lease_ = latest;
}

std::map<etcd::LeaseId, TimePoint> EtcdModel::ends() const {
  std::map<etcd::LeaseId, TimePoint> ends;
  for (const auto& [id, lease] : leases_) ends[id] = lease.expires;
  return ends;
}

std::optional<TimePoint> EtcdModel::next_expiry() const {
  std::optional<TimePoint> next;
  for (const auto& [id, lease] : leases_)
    next = std::min(next.value_or(lease.expires), lease.expires);
  return next;
}

}  // namespace lockbench::simulate
