#include "strategies/zookeeper/client/keeper.h"

#include <algorithm>
#include <bit>

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
  next_ = due_[&session] = env_->now();
  poller_->wake();
  return {};
}

void SessionKeeper::remove(Session& session) {
  constexpr Duration kPause = std::chrono::milliseconds(1);
  std::unique_lock lock(mutex_);
  due_.erase(&session);
  // Bounded by the hooks of its Env, in which a fault may stall it.
  while (attended_ == &session) {
    lock.unlock();
    Carrier::current().wait(nullptr, BootClock::now() + kPause, {});
    lock.lock();
  }
}

void SessionKeeper::watch(Session& session, int descriptor) {
  poller_->watch(descriptor, std::bit_cast<std::uintptr_t>(&session));
}

void SessionKeeper::keep(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this]() noexcept { poller_->wake(); });
  Duration longest{};
  while (!stop.stop_requested()) {
    const auto ready = poller_->wait(longest);
    std::unique_lock lock(mutex_);
    for (const std::uint64_t tag : ready) {
      attend(std::bit_cast<Session*>(static_cast<std::uintptr_t>(tag)), lock);
    }
    if (const TimePoint now = env_->now(); now >= next_) {
      next_ = TimePoint::max();
      // Sessions come and go while one is attended.
      for (auto due = due_.begin(); due != due_.end();) {
        Session* const session = due->first;
        if (now < due->second) {
          next_ = std::min(next_, due->second);
        } else {
          attend(session, lock);
        }
        due = due_.upper_bound(session);
      }
    }
    longest = next_ == TimePoint::max() ? Duration::max() : next_ - env_->now();
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
  }
  const auto due = due_.find(session);
  if (due == due_.end()) return;
  due->second = env_->now() + next;
  next_ = std::min(next_, due->second);
}

SessionKeeper& session_keeper(Services& services) {
  return services.get_or_make<SessionKeeper>(
      [&] { return std::make_shared<SessionKeeper>(make_service_env(services)); });
}

}  // namespace lockbench::zookeeper
