#include <optional>

#include "strategies/etcd/client/messages.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

/// The message, if the bytes are one: protobuf does the parsing.
template <class Message>
std::optional<Message> message_in(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  return message;
}

void read_messages(std::string_view bytes) {
  const etcd::Txn acquire{
      .conditions = {etcd::absent("lock")},
      .then = {etcd::put("lock", 1), etcd::get("lock")},
      .otherwise = {etcd::get("lock"), etcd::newest("lock/", 2), etcd::remove("lock")}};
  if (const auto txn = message_in<etcdserverpb::TxnResponse>(bytes)) {
    if (const auto read = etcd::read_txn(acquire, *txn)) {
      require(read->found.size() == (read->succeeded ? acquire.then : acquire.otherwise).size());
    }
  }
  if (const auto range = message_in<etcdserverpb::RangeResponse>(bytes)) {
    const auto asked = etcd::newest("lock/", 2);
    if (const auto found = etcd::read_keys(asked.request_range(), *range)) {
      require(found->size() <= 2);
    }
  }
  if (const auto lease = message_in<etcdserverpb::LeaseGrantResponse>(bytes)) {
    if (const auto granted = etcd::read_grant(*lease)) require(granted->ttl > Duration::zero());
  }
  static_cast<void>(etcd::is_token(bytes));
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(etcd, lockbench::fuzz::read_messages)
