#include "strategies/etcd/client/messages.h"

#include <algorithm>

namespace lockbench::etcd {
namespace {

using etcdserverpb::Compare;
using etcdserverpb::RangeRequest;
using etcdserverpb::RequestOp;
using etcdserverpb::ResponseOp;

Compare creation(Compare::CompareResult result, const std::string& key, std::int64_t revision,
                 const std::string& range_end = {}) {
  Compare compare;
  compare.set_target(Compare::CREATE);
  compare.set_result(result);
  compare.set_key(key);
  compare.set_create_revision(revision);
  compare.set_range_end(range_end);
  return compare;
}

ResponseOp::ResponseCase answer_to(RequestOp::RequestCase asked) {
  if (asked == RequestOp::kRequestPut) return ResponseOp::kResponsePut;
  return asked == RequestOp::kRequestDeleteRange ? ResponseOp::kResponseDeleteRange
                                                 : ResponseOp::kResponseRange;
}

}  // namespace

etcdserverpb::TxnRequest to_request(const Txn& txn) {
  etcdserverpb::TxnRequest request;
  for (const Compare& condition : txn.conditions) *request.add_compare() = condition;
  for (const RequestOp& operation : txn.then) *request.add_success() = operation;
  for (const RequestOp& operation : txn.otherwise) *request.add_failure() = operation;
  return request;
}

Compare exists(const std::string& key) { return creation(Compare::GREATER, key, 0); }

Compare absent(const std::string& key) { return creation(Compare::EQUAL, key, 0); }

Compare created_in(const std::string& key, std::int64_t revision) {
  return creation(Compare::EQUAL, key, revision);
}

Compare changed_in(const std::string& key, std::int64_t revision) {
  Compare compare;
  compare.set_target(Compare::MOD);
  compare.set_result(Compare::EQUAL);
  compare.set_key(key);
  compare.set_mod_revision(revision);
  return compare;
}

Compare none_below(const std::string& prefix) {
  return creation(Compare::EQUAL, prefix, 0, end_of_prefix(prefix));
}

Compare none_below_before(const std::string& prefix, std::int64_t revision) {
  return creation(Compare::GREATER, prefix, revision - 1, end_of_prefix(prefix));
}

RequestOp put(const std::string& key, LeaseId lease) {
  RequestOp operation;
  operation.mutable_request_put()->set_key(key);
  operation.mutable_request_put()->set_lease(lease);
  return operation;
}

RequestOp put_value(const std::string& key, const std::string& value) {
  RequestOp operation;
  operation.mutable_request_put()->set_key(key);
  operation.mutable_request_put()->set_value(value);
  return operation;
}

RequestOp get(const std::string& key) {
  RequestOp operation;
  operation.mutable_request_range()->set_key(key);
  operation.mutable_request_range()->set_keys_only(true);
  return operation;
}

RequestOp newest(const std::string& prefix, std::int64_t count, std::int64_t created_until) {
  RequestOp operation = get(prefix);
  RangeRequest& range = *operation.mutable_request_range();
  range.set_range_end(end_of_prefix(prefix));
  range.set_limit(count);
  range.set_sort_target(RangeRequest::CREATE);
  range.set_sort_order(RangeRequest::DESCEND);
  range.set_max_create_revision(created_until);
  return operation;
}

RequestOp remove(const std::string& key) {
  RequestOp operation;
  operation.mutable_request_delete_range()->set_key(key);
  return operation;
}

std::string end_of_prefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

std::optional<std::vector<Key>> read_keys(const RangeRequest& asked,
                                          const etcdserverpb::RangeResponse& response) {
  const bool many = !asked.range_end().empty();
  const std::int64_t most = many ? asked.limit() : 1, last = asked.max_create_revision();
  if (most > 0 && response.kvs_size() > most) return std::nullopt;
  std::vector<Key> keys;
  for (const etcdserverpb::KeyValue& found : response.kvs()) {
    const std::int64_t created = found.create_revision();
    const bool named = many ? found.key().starts_with(asked.key()) : found.key() == asked.key();
    if (!named || created <= 0 || (last > 0 && created > last)) return std::nullopt;
    keys.push_back({.name = found.key(),
                    .created = created,
                    .lease = found.lease(),
                    .changed = found.mod_revision(),
                    .value = found.value()});
  }
  return keys;
}

std::optional<TxnResult> read_txn(const Txn& txn, const etcdserverpb::TxnResponse& response) {
  const std::vector<RequestOp>& done = response.succeeded() ? txn.then : txn.otherwise;
  const auto& answers = response.responses();
  TxnResult result{.succeeded = response.succeeded(), .revision = response.header().revision()};
  if (result.revision <= 0 || static_cast<std::size_t>(answers.size()) != done.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < done.size(); ++i) {
    const ResponseOp& answer = answers[static_cast<int>(i)];
    if (answer.response_case() != answer_to(done[i].request_case())) return std::nullopt;
    auto found = read_keys(done[i].request_range(), answer.response_range());
    if (!found) return std::nullopt;
    result.found.push_back(*std::move(found));
  }
  return result;
}

std::optional<GrantedLease> read_grant(const etcdserverpb::LeaseGrantResponse& response) {
  if (response.id() == 0 || response.ttl() <= 0) return std::nullopt;
  if (response.ttl() > ceil_seconds(kLongestDuration)) return std::nullopt;
  return GrantedLease{.id = response.id(), .ttl = std::chrono::seconds(response.ttl())};
}

bool is_token(std::string_view text) {
  constexpr std::size_t kLongest = 4096;
  return !text.empty() && text.size() <= kLongest &&
         std::ranges::all_of(text, [](char byte) { return byte > ' ' && byte <= '~'; });
}

}  // namespace lockbench::etcd
