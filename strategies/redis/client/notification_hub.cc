#include "strategies/redis/client/notification_hub.h"

#include <vector>

#include "strategies/waiting/wait_policy.h"

namespace lockbench::redis {
namespace {

// How long a channel without waiters is kept: under contention the next waiter follows soon.
constexpr Duration kKeptUnused = std::chrono::seconds(1);
constexpr Duration kTick = std::chrono::milliseconds(250);
constexpr WaitPolicy kReconnect{.kind = WaitKind::backoff,
                                .min = std::chrono::milliseconds(10),
                                .max = std::chrono::seconds(1)};

}  // namespace

void NotificationHub::join(Waiter& waiter, const std::string& channel) {
  const std::scoped_lock lock(mutex_);
  const auto [found, added] = channels_.try_emplace(channel);
  Channel& joined = found->second;
  waiter.channel_ = &joined;
  waiter.place_ = joined.waiters.insert(joined.waiters.end(), &waiter);
  joined.unused_since.reset();
  // The task notices a failure and reconnects.
  if (added && connected_) (void)subscriber_->subscribe(channel);
  if (task_) return;
  const auto report = [this](const std::string& why) {
    env_->report("messages about released locks no longer arrive: " + why);
  };
  auto started =
      Carrier::current().start([this](const std::stop_token& stop) { listen(stop); }, report);
  if (!started) return report(started.error());  // the next waiter tries again
  task_ = *std::move(started);
}

void NotificationHub::leave(Waiter& waiter) {
  const std::scoped_lock lock(mutex_);
  waiter.channel_->waiters.erase(waiter.place_);
  if ((waiter.signalled_ || waiter.asking_) && !waiter.satisfied_) wake_one(*waiter.channel_);
}

void NotificationHub::wake_one(Channel& channel) {
  for (Waiter* waiter : channel.waiters) {
    if (waiter->signalled_) continue;
    waiter->signalled_ = true;
    waiter->event_.set();
    return;
  }
}

void NotificationHub::listen(const std::stop_token& stop) {
  std::uint32_t failures = 0;
  TimePoint looked_at = env_->now();
  while (!stop.stop_requested()) {
    const auto push = next_push(stop);
    if (!push) {
      disconnected();
      // The pause grows until a message arrives: a server may refuse every subscription.
      env_->wait(nullptr, env_->now() + kReconnect.delay(failures++, *env_), stop);
      continue;
    }
    if (*push) {
      failures = 0;
      take(**push);
    }
    if (const TimePoint now = env_->now(); now - looked_at >= kTick) {
      drop_unused();
      looked_at = now;
    }
  }
}

StoreResult<std::optional<Push>> NotificationHub::next_push(const std::stop_token& stop) {
  if (auto connected = subscriber_->connect(stop); !connected) {
    return tl::unexpected(std::move(connected.error()));
  }
  std::vector<std::string> names;
  {
    const std::scoped_lock lock(mutex_);
    // From here on, new clients subscribe themselves.
    if (!std::exchange(connected_, true)) {
      for (const auto& [name, channel] : channels_) names.push_back(name);
    }
  }
  // After a failure the next receive() fails.
  if (!names.empty()) (void)subscriber_->subscribe_to_all(names);
  return subscriber_->receive(kTick, stop);
}

void NotificationHub::take(const Push& push) {
  const std::scoped_lock lock(mutex_);
  const auto found = channels_.find(push.channel);
  if (found == channels_.end()) return;  // dropped meanwhile
  Channel& channel = found->second;
  if (push.kind == Push::Kind::message) return wake_one(channel);
  channel.subscribed = push.kind == Push::Kind::subscribed;
  if (!channel.subscribed) return;  // and not subscribed to again yet
  for (Waiter* waiter : channel.waiters) waiter->event_.set();
}

void NotificationHub::disconnected() {
  const std::scoped_lock lock(mutex_);
  if (!std::exchange(connected_, false)) return;
  for (auto& [name, channel] : channels_) {
    channel.subscribed = false;
    for (Waiter* waiter : channel.waiters) waiter->event_.set();
  }
}

void NotificationHub::drop_unused() {
  const std::scoped_lock lock(mutex_);
  const TimePoint now = env_->now();
  for (auto next = channels_.begin(); next != channels_.end();) {
    const auto place = next++;
    Channel& channel = place->second;
    if (!channel.waiters.empty()) continue;
    if (!channel.unused_since) channel.unused_since = now;
    if (now - *channel.unused_since < kKeptUnused) continue;
    (void)subscriber_->unsubscribe(place->first);  // a failure ends all subscriptions anyway
    channels_.erase(place);
  }
}

}  // namespace lockbench::redis
