#include "strategies/redis/client/renewal_channel.h"

#include <deque>

#include "strategies/redis/client/answers.h"

namespace lockbench::redis {
namespace {

class RedisRenewals : public RenewalChannel {
 public:
  RedisRenewals(std::unique_ptr<Connection> connection, const RenewalProtocol& protocol)
      : connection_(std::move(connection)), protocol_(protocol) {}

  void queue(std::string_view key, std::string_view token, Duration ttl) override {
    if (protocol_.wait) ++queued_;
    const std::string argument = protocol_.argument(ttl);
    if (protocol_.script == nullptr)
      return connection_->queue({protocol_.unchecked, key, argument});
    // The first of a batch carries the script's source, so that the others find it even after a
    // restart of the server: in a pipeline none can be repeated after NOSCRIPT.
    const Script& script = *protocol_.script;
    const std::string_view words[] = {first_ ? "EVAL" : "EVALSHA",
                                      first_ ? script.source : script.sha1,
                                      "1",
                                      key,
                                      token,
                                      argument};
    connection_->queue(Command(words), script.name);
    first_ = false;
  }

  void flush(const std::stop_token& stop) override {
    if (protocol_.wait) protocol_.wait->queue(*connection_);
    connection_->flush(stop);
    first_ = true;
  }

  RenewalAnswer answer(const std::stop_token& stop) override {
    if (!protocol_.wait) return next_answer(stop);
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
    for (; queued_ > 0; --queued_) answers_.push_back(next_answer(stop));
    const auto acknowledged = protocol_.wait->receive(*connection_, protocol_.wait->within, stop);
    if (acknowledged && *acknowledged >= protocol_.wait->needed) return;
    failure_ = acknowledged ? protocol_.wait->too_few("renewal", *acknowledged).message
                            : acknowledged.error().message;
    for (RenewalAnswer& answer : answers_) {
      if (answer == RenewalAnswer::renewed) answer = RenewalAnswer::failed;
    }
  }

  std::unique_ptr<Connection> connection_;
  const RenewalProtocol protocol_;
  std::size_t queued_ = 0;             ///< without an answer
  std::deque<RenewalAnswer> answers_;  ///< received ahead of their turn
  std::string failure_;
  bool first_ = true;  ///< of its batch
};

}  // namespace

std::unique_ptr<RenewalChannel> make_renewal_channel(std::unique_ptr<Connection> connection,
                                                     const RenewalProtocol& protocol) {
  return std::make_unique<RedisRenewals>(std::move(connection), protocol);
}

}  // namespace lockbench::redis
