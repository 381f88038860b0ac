#include "strategies/redis/client/renewal.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "strategies/redis/client/protocol.h"

namespace lockbench::redis {
namespace {

class RedisRenewals : public RenewalChannel {
 public:
  RedisRenewals(std::unique_ptr<Connection> connection, const RenewalProtocol& protocol,
                std::optional<ReplicaWait> wait)
      : connection_(std::move(connection)), protocol_(protocol), wait_(wait) {}

  void queue(std::string_view key, std::string_view token, Duration ttl) override {
    const bool first = queued_++ == 0;
    const std::string argument = protocol_.argument(ttl);
    if (protocol_.script == nullptr) {
      return connection_->queue({protocol_.unchecked, key, argument});
    }
    // The first of a batch carries the script's source, so that the others find it even after a
    // restart of the server: in a pipeline none can be repeated after NOSCRIPT.
    connection_->queue(*protocol_.script, first, {key}, {token, argument});
  }

  void flush(const std::stop_token& stop) override {
    if (wait_) wait_->queue(*connection_);
    connection_->flush(stop);
    sent_ = std::exchange(queued_, 0);
  }

  RenewalAnswer answer(const std::stop_token& stop) override {
    if (!wait_) return next_answer(stop);
    if (answers_.empty()) receive_batch(stop);
    const RenewalAnswer first = answers_.front();
    answers_.pop_front();
    return first;
  }

  std::string failure() const override { return failure_; }

 private:
  RenewalAnswer next_answer(const std::stop_token& stop) {
    const auto renewed = connection_->read(kFlag, protocol_.name(), connection_->receive(stop));
    if (renewed) return *renewed ? RenewalAnswer::renewed : RenewalAnswer::not_owner;
    failure_ = renewed.error().message;
    return RenewalAnswer::failed;
  }

  /// All answers of a batch, and what became of it on the replicas.
  void receive_batch(const std::stop_token& stop) {
    for (; sent_ > 0; --sent_) answers_.push_back(next_answer(stop));
    const auto kept = wait_->receive(*connection_, stop);
    if (kept) return;
    failure_ = kept.error().message;
    std::replace(answers_.begin(), answers_.end(), RenewalAnswer::renewed, RenewalAnswer::failed);
  }

  std::unique_ptr<Connection> connection_;
  const RenewalProtocol protocol_;
  const std::optional<ReplicaWait> wait_;
  std::size_t queued_ = 0, sent_ = 0;  ///< in this batch; of the latest, without an answer
  std::deque<RenewalAnswer> answers_;  ///< received ahead of their turn
  std::string failure_;
};

}  // namespace

void ReplicaWait::queue(Connection& redis) const {
  const std::string count = std::to_string(replicas);
  const std::string milliseconds =
      std::to_string(std::max<std::int64_t>(1, ceil_milliseconds(within)));
  const std::string_view words[] = {"WAIT", count, milliseconds};
  redis.queue(Command(words), {}, within);
}

StoreResult<void> ReplicaWait::receive(Connection& redis, const std::stop_token& stop,
                                       const std::function<void(int)>& seen) const {
  const auto acknowledged = redis.read(kCount, "WAIT", redis.receive(stop));
  if (!acknowledged) return tl::unexpected(acknowledged.error());
  if (seen) seen(static_cast<int>(*acknowledged));
  if (*acknowledged >= needed) return {};
  return tl::unexpected(
      StoreError{StoreError::Kind::refused,
                 fmt::format("{}: {} of {} replicas acknowledged within {}", redis.display(),
                             *acknowledged, replicas, format_duration(within))});
}

std::unique_ptr<RenewalChannel> make_renewal_channel(std::unique_ptr<Connection> connection,
                                                     const RenewalProtocol& protocol,
                                                     std::optional<ReplicaWait> wait) {
  return std::make_unique<RedisRenewals>(std::move(connection), protocol, wait);
}

}  // namespace lockbench::redis
