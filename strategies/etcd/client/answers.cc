#include "strategies/etcd/client/answers.h"

#include <algorithm>

namespace lockbench::etcd {
namespace {

using etcdserverpb::ResponseOp;

bool fits(const Operation& operation, const std::vector<Key>& found) {
  const bool newest = operation.kind == Operation::Kind::newest;
  const auto most = static_cast<std::size_t>(newest ? operation.count : 1);
  return found.size() <= most && std::ranges::all_of(found, [&](const Key& key) {
           const bool in_time =
               operation.created_until == 0 || key.created <= operation.created_until;
           return key.created > 0 && in_time &&
                  (newest ? key.name.starts_with(operation.key) : key.name == operation.key);
         });
}

ResponseOp::ResponseCase answer_to(Operation::Kind kind) {
  switch (kind) {
    case Operation::Kind::put:
      return ResponseOp::kResponsePut;
    case Operation::Kind::remove:
      return ResponseOp::kResponseDeleteRange;
    case Operation::Kind::get:
    case Operation::Kind::newest:
      break;
  }
  return ResponseOp::kResponseRange;
}

}  // namespace

std::vector<Key> read_keys(const etcdserverpb::RangeResponse& response) {
  std::vector<Key> keys;
  for (const etcdserverpb::KeyValue& found : response.kvs()) {
    keys.push_back({found.key(), found.create_revision(), found.lease()});
  }
  return keys;
}

std::optional<TxnResult> read_txn(const Txn& txn, const etcdserverpb::TxnResponse& response) {
  const std::vector<Operation>& done = response.succeeded() ? txn.then : txn.otherwise;
  const auto& answers = response.responses();
  TxnResult result{.succeeded = response.succeeded(), .revision = response.header().revision()};
  if (result.revision <= 0 || static_cast<std::size_t>(answers.size()) != done.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < done.size(); ++i) {
    const ResponseOp& answer = answers[static_cast<int>(i)];
    if (answer.response_case() != answer_to(done[i].kind)) return std::nullopt;
    result.found.push_back(read_keys(answer.response_range()));
    if (!fits(done[i], result.found.back())) return std::nullopt;
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
