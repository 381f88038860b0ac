#include "strategies/zookeeper/client/keeper.h"

#include <algorithm>

#include "strategies/zookeeper/client/session.h"

namespace lockbench::zookeeper {

SessionKeeper::SessionKeeper(std::unique_ptr<Env> env)
    : env_(std::move(env)), changed_(env_->make_event()) {}

void SessionKeeper::add(Session& session, Duration ttl) {
  constexpr Duration kShortest = std::chrono::milliseconds(10);
  constexpr Duration kLongest = std::chrono::milliseconds(500);
  const std::scoped_lock lock(mutex_);
  ticks_[&session] = std::clamp(ttl / 6, kShortest, kLongest);
  changed_->set();
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { this->keep(stop); });
  }
}

void SessionKeeper::remove(Session& session) {
  const std::scoped_lock lock(mutex_);
  ticks_.erase(&session);
}

void SessionKeeper::close_later(std::function<void()> close) {
  const std::scoped_lock lock(mutex_);
  closings_.remove_if([](const Closing& closing) { return closing.done->load(); });
  auto done = std::make_shared<std::atomic<bool>>(false);
  closings_.push_back({done, std::jthread([done, close = std::move(close)] {
                         close();
                         *done = true;
                       })});
}

void SessionKeeper::keep(const std::stop_token& stop) {
  Duration tick{};
  while (!stop.stop_requested()) {
    const TimePoint until = tick > Duration::zero() ? env_->now() + tick : TimePoint::max();
    env_->wait(changed_.get(), until, stop);
    const std::scoped_lock lock(mutex_);
    tick = {};
    for (const auto& [session, own] : ticks_) {
      tick = tick > Duration::zero() ? std::min(tick, own) : own;
      session->keep_alive(*env_);
    }
  }
}

SessionKeeper& session_keeper(Services& services) {
  return services.get_or_make<SessionKeeper>(
      [&] { return std::make_shared<SessionKeeper>(make_service_env(services)); });
}

}  // namespace lockbench::zookeeper
