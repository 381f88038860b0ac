#include "strategies/zookeeper/client/keeper.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "strategies/zookeeper/client/session.h"

namespace lockbench::zookeeper {

tl::expected<void, std::string> SessionKeeper::add(Session& session) {
  const std::scoped_lock lock(mutex_);
  if (!poller_) {
    auto poller = Poller::make();
    if (!poller) return tl::unexpected(std::move(poller.error()));
    poller_ = *std::move(poller);
  }
  if (!task_) {
    auto started =
        Carrier::current().start([this](const std::stop_token& stop) { keep(stop); },
                                 [this](const std::string& why) {
                                   env_->report("ZooKeeper sessions are not kept: " + why);
                                 });
    if (!started) return tl::unexpected(std::move(started.error()));
    task_ = *std::move(started);
  }
  schedule(session, env_->now());
  poller_->wake();
  return {};
}

void SessionKeeper::remove(Session& session) {
  constexpr Duration kPause = std::chrono::milliseconds(1);
  std::unique_lock lock(mutex_);
  if (const auto due = due_.find(&session); due != due_.end()) {
    by_time_.erase(due->second);
    due_.erase(due);
  }
  // Bounded by the hooks of its Env, in which a fault may stall it.
  while (attended_ == &session) {
    lock.unlock();
    Carrier::current().wait(nullptr, Carrier::current().now() + kPause, {});
    lock.lock();
  }
}

void SessionKeeper::watch(Session& session, int descriptor) {
  poller_->watch(descriptor, std::bit_cast<std::uintptr_t>(&session));
}

void SessionKeeper::schedule(Session& session, TimePoint at) {
  const auto place = by_time_.emplace(at, &session);
  const auto [due, added] = due_.try_emplace(&session, place);
  if (!added) by_time_.erase(std::exchange(due->second, place));
}

void SessionKeeper::keep(const std::stop_token& stop) {
  // Of thousands of sessions one is always about to be due: they are attended in batches.
  constexpr Duration kShortest = std::chrono::milliseconds(1);
  const std::stop_callback on_stop(stop, [this]() noexcept { poller_->wake(); });
  Duration longest{};
  while (!stop.stop_requested()) {
    const auto ready = poller_->wait(longest);
    std::unique_lock lock(mutex_);
    for (const std::uint64_t tag : ready) {
      attend(std::bit_cast<Session*>(static_cast<std::uintptr_t>(tag)), lock);
    }
    // Sessions come and go while one is attended, which is not due again before a later time.
    const TimePoint now = env_->now();
    while (!by_time_.empty() && by_time_.begin()->first <= now) {
      attend(by_time_.begin()->second, lock);
    }
    longest = by_time_.empty() ? Duration::max()
                               : std::max(by_time_.begin()->first - env_->now(), kShortest);
  }
}

void SessionKeeper::attend(Session* session, std::unique_lock<std::mutex>& lock) {
  struct Attending {
    explicit Attending(SessionKeeper& by, Session* session, std::unique_lock<std::mutex>& held)
        : keeper(by), lock(held) {
      keeper.attended_ = session;
      lock.unlock();
    }
    Attending(const Attending&) = delete;
    Attending& operator=(const Attending&) = delete;
    ~Attending() {
      lock.lock();
      keeper.attended_ = nullptr;
    }
    SessionKeeper& keeper;
    std::unique_lock<std::mutex>& lock;
  };
  // One that was removed meanwhile is not among them.
  if (!due_.contains(session)) return;
  Duration next{};
  {
    const Attending attending(*this, session, lock);
    next = session->keep(*env_);
    // Where something is always to be done, the clients on the same thread must run in between.
    Carrier::current().yield();
  }
  if (due_.contains(session)) schedule(*session, env_->now() + next);
}

SessionKeeper& session_keeper(Services& services) {
  return services.get_or_make<SessionKeeper>(
      [&] { return std::make_shared<SessionKeeper>(make_service_env(services)); });
}

}  // namespace lockbench::zookeeper
