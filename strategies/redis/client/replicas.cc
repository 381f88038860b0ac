#include "strategies/redis/client/replicas.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/redis/client/answers.h"

namespace lockbench::redis {
namespace {

ReplicaWait wait_of(const StrategyOptions& options, bool all_needed) {
  const int replicas = options.wait_replicas.value_or(0);
  return {.replicas = replicas,
          .needed = all_needed ? replicas : std::min(replicas, 1),
          .within = options.wait_timeout};
}

}  // namespace

void ReplicaWait::queue(Connection& redis) const {
  const std::string milliseconds =
      std::to_string(std::max<std::int64_t>(1, ceil_milliseconds(within)));
  redis.queue({"WAIT", std::to_string(replicas), milliseconds});
}

StoreResult<int> ReplicaWait::receive(Connection& redis, Duration patience,
                                      const std::stop_token& stop) const {
  redis.flush(stop);
  // Not reported as a wait for the lock.
  auto answer = redis.receive_within(within + patience, stop);
  if (!answer) {
    redis.close();
    answer = redis.receive(stop);
  }
  return redis.read(kCount, "WAIT", *std::move(answer)).map([](std::int64_t acknowledged) {
    return static_cast<int>(acknowledged);
  });
}

StoreError ReplicaWait::too_few(const std::string& endpoint, int acknowledged) const {
  return {StoreError::Kind::refused,
          fmt::format("{}: {} of {} replicas acknowledged within {}", endpoint, acknowledged,
                      replicas, format_duration(within))};
}

Replicas::Replicas(const Context& context, bool all_needed)
    : wait_(wait_of(context.options, all_needed)),
      patience_(context.options.command_timeout),
      observer_(context.services.get<StrategyObserver>()),
      env_(context.env) {}

StoreResult<void> Replicas::check(const std::string& endpoint) const {
  if (wait_.replicas > 0) return {};
  return tl::unexpected(StoreError{
      StoreError::Kind::rejected,
      endpoint + ": the number of replicas to wait for is not given: set --wait-replicas"});
}

void Replicas::queue(Connection& redis) {
  asked_at_ = env_.now();
  wait_.queue(redis);
}

StoreResult<int> Replicas::receive(Connection& redis, const std::stop_token& stop) {
  auto acknowledged = wait_.receive(redis, patience_, stop);
  if (acknowledged) {
    observer_.on_acknowledged(env_.now() - asked_at_, *acknowledged, wait_.needed);
  }
  return acknowledged;
}

}  // namespace lockbench::redis
