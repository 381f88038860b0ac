#include "strategies/redis/client/protocol.h"
#include "tests/fuzz/target.h"
#include "watch/families.h"
#include "watch/sources/keys.h"
#include "watch/sources/redis_lock.h"
#include "watch/sources/zookeeper_locks.h"

namespace lockbench::fuzz {
namespace {

using watch::KeyKind;

/// Redis replies about keys and channels, and the holders in them.
void read_redis(std::string_view bytes) {
  redis::ReplyReader reader;
  reader.feed(bytes);
  std::vector<redis::Reply> replies;
  // Each answer takes at least one byte.
  for (std::size_t i = 0; i <= bytes.size(); ++i) {
    auto reply = reader.next();
    if (!reply || !*reply) break;
    replies.push_back(**std::move(reply));
  }
  for (std::size_t i = 0; i < replies.size(); ++i) {
    static_cast<void>(watch::read_invalidation(replies[i]));
    static_cast<void>(watch::read_message(replies[i]));
    const watch::RedisAnswers answers{replies[i], replies[(i + 1) % replies.size()]};
    for (const KeyKind kind : {KeyKind::text, KeyKind::hash, KeyKind::other}) {
      const auto lock = watch::read_redis_lock("key", kind, answers);
      require(!lock || !lock->ttl_left || *lock->ttl_left >= Duration::zero());
    }
  }
}

void read_names(std::string_view bytes) {
  if (const auto node = watch::read_sequence_node(std::string(bytes))) {
    require(node->maker.size() < bytes.size());
  }
  if (const auto value = watch::read_lock_value(bytes)) {
    require(value->owner.size() <= bytes.size());
  }
  if (const auto beside = watch::companion_of(bytes)) require(beside->lock.size() < bytes.size());
  const watch::Families families({"lock:*"});
  static_cast<void>(families.family_of(bytes));
}

void read_watched(std::string_view bytes) {
  read_redis(bytes);
  read_names(bytes);
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(watch, lockbench::fuzz::read_watched)
