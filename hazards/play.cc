#include "hazards/play.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "strategies/redis/client/connection.h"

namespace lockbench::hazards {
namespace {

/// Short, to keep plays short, but long enough that a busy machine does not cause a fault by
/// itself: a renewal timer must fire in time.
Duration usual_ttl(const Traits& traits) {
  if (traits.renews) return std::chrono::milliseconds(1500);
  // The time that the nodes take to answer is subtracted from the validity.
  if (traits.nodes > 1) return std::chrono::seconds(1);
  if (traits.ttl_in_seconds) return std::chrono::seconds(1);
  return std::chrono::milliseconds(500);
}

}  // namespace

Play::Play(ServerPool& servers, std::shared_ptr<PrivateStore> store, const Descriptor& strategy,
           std::string key)
    : servers_(servers),
      store_(std::move(store)),
      strategy_(strategy),
      first_key_(std::move(key)),
      key_(first_key_ + "}"),
      ttl_(std::max(usual_ttl(strategy.traits), store_->shortest_session())) {}

Actor& Play::client(std::string_view name, const ActorSettings& settings) {
  ActorSettings own = settings;
  if (own.number == 0) own.number = ++clients_;
  return actors_.emplace_back(*this, std::string(name), own);
}

void Play::set_ttl(Duration ttl) { ttl_ = ttl; }

Duration Play::tolerance() const {
  // A client process sleeps before each request, and a busy machine takes its time to wake it.
  constexpr std::chrono::milliseconds kWakeUp{100};
  return std::max<Duration>(ttl_ / 4, kWakeUp);
}

void Play::wait_until(TimePoint due) const {
  due = std::max(due, BootClock::now());
  std::this_thread::sleep_until(due);
  require_in_time("a pause ended", due, BootClock::now(), tolerance());
}

void Play::change_key() { key_ = fmt::format("{}-{}}}", first_key_, ++keys_); }

std::uint64_t Play::counter() {
  const auto env = make_system_env(0);
  const auto endpoint = redis::parse_endpoint(servers_.counter_url());
  const auto connection =
      redis::make_connection_factory()->make(*endpoint, std::chrono::seconds(5), *env);
  const std::string name = key_ + ":counter";
  const auto value = connection->call({"GET", name});
  if (!value) throw Failure(value.error().message);
  return value->is_nil() ? 0 : std::stoull(value->text);
}

void require_in_time(std::string_view step, TimePoint due, TimePoint happened_at,
                     Duration tolerance) {
  const auto in_milliseconds = [](Duration duration) {
    return std::chrono::round<std::chrono::milliseconds>(duration).count();
  };
  const Duration late = happened_at - due;
  if (late <= tolerance) return;
  throw Disturbed(fmt::format("disturbed: {} {} ms late, where {} ms are tolerated", step,
                              in_milliseconds(late), in_milliseconds(tolerance)));
}

}  // namespace lockbench::hazards
