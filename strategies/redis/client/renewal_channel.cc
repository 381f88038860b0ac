#include "strategies/redis/client/renewal_channel.h"

namespace lockbench::redis {
namespace {

class RedisRenewals : public RenewalChannel {
 public:
  RedisRenewals(std::unique_ptr<Connection> connection, const RenewalProtocol& protocol)
      : connection_(std::move(connection)), protocol_(protocol) {}

  void queue(std::string_view key, std::string_view token, Duration ttl) override {
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
    connection_->flush(stop);
    first_ = true;
  }

  RenewalAnswer answer(const std::stop_token& stop) override {
    const auto reply = connection_->receive(stop);
    if (!reply) {
      failure_ = reply.error().message;
      return RenewalAnswer::failed;
    }
    return reply->is_integer(1) ? RenewalAnswer::renewed : RenewalAnswer::not_owner;
  }

  std::string failure() const override { return failure_; }

 private:
  std::unique_ptr<Connection> connection_;
  const RenewalProtocol protocol_;
  std::string failure_;
  bool first_ = true;  ///< of its batch
};

}  // namespace

std::unique_ptr<RenewalChannel> make_renewal_channel(std::unique_ptr<Connection> connection,
                                                     const RenewalProtocol& protocol) {
  return std::make_unique<RedisRenewals>(std::move(connection), protocol);
}

}  // namespace lockbench::redis
