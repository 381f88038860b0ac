#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "strategies/conditional_lease.h"
#include "strategies/nats/client/connection.h"

namespace lockbench::nats {

/// A stream counts a message as expired at most this late (filestore.go, resetAgeChk).
inline constexpr std::chrono::milliseconds kKeptLonger{250};

/// Keys in buckets of NATS's key-value store, as nats.go's jetstream KV writes them: each is the
/// latest message of a subject, its version is that message's number in the stream, and a deleted
/// key is a message that says so.
///
/// All keys of a bucket have one TTL, its stream's max_age: only NATS 2.11 has one for each key. A
/// bucket is made with the TTL of the first put, and a longer one raises it; nothing lowers it. A
/// client that does so while another raises it further can undo that: clients of one bucket should
/// use one TTL, as those of a run do.
class Bucket : public VersionedStore {
 public:
  /// `expires`: false for keys without a TTL, which are in buckets of their own.
  Bucket(const Endpoint& endpoint, const Timeouts& timeouts, Env& env, bool expires)
      : env_(env), nats_(endpoint, timeouts, env), expires_(expires) {}

  StoreResult<void> connect() override { return nats_.connect(); }
  const std::string& display() const override { return nats_.display(); }
  StoreResult<std::optional<VersionedItem>> get(const std::string& key,
                                                const std::stop_token& stop) override;
  StoreResult<bool> put(const ConditionalPut& put, const std::stop_token& stop) override;

  /// The version that the latest put made.
  std::uint64_t revision() const { return revision_; }

 private:
  struct Look {
    std::optional<VersionedItem> item{};
    std::uint64_t last = 0;  ///< its number, or that of the mark of its deletion; 0: neither
  };
  StoreResult<Look> look(const Place& place, std::string_view key, const std::stop_token& stop);
  /// Makes the key's bucket keep its messages this long at least.
  StoreResult<void> keep_for(Duration ttl, const Place& place, std::string_view key,
                             const std::stop_token& stop);
  /// What the stream is, once it is made.
  StoreResult<Answer> stream_of(const Place& place, std::string_view key,
                                const std::stop_token& stop);
  StoreResult<Answer> publish(const Connection::Request& request, const std::stop_token& stop);
  /// A request to the stream.
  StoreResult<Answer> manage(std::string_view name, const Place& place, std::string_view key,
                             std::string_view payload, const std::stop_token& stop);
  tl::unexpected<StoreError> refused(const Answer& answer) const;

  Env& env_;
  Connection nats_;
  const bool expires_;
  std::map<std::string, Duration, std::less<>> ages_;  ///< at least, by stream that is made
  std::uint64_t revision_ = 0;
};

}  // namespace lockbench::nats
