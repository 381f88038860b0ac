#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulate/judge.h"
#include "strategies/descriptor.h"
#include "strategies/number.h"

namespace lockbench::simulate {

/// How the clients of a hunt use their locks.
struct Uses {
  int keys = 1;
  /// Keys take turns in these, so that locks of one name are different ones.
  int databases = 1;
  std::vector<Duration> ttls;        ///< of the clients in turn
  std::vector<Duration> inner_ttls;  ///< of second acquisitions, likewise
  bool reenters = false;             ///< half of the holders acquire a second time
};

/// A client's lock on all databases, which tells the judge what it does.
class HuntedLock final : public LockStrategy {
 public:
  HuntedLock(const Context& context, const Descriptor& strategy, const Uses& uses, Judge& judge)
      : env_(context.env), client_(context.client), uses_(uses), judge_(judge) {
    for (int database = 0; database < uses.databases; ++database) {
      Context own = context;
      for (std::string& url : own.urls) {
        if (database > 0) url += fmt::format("/{}", database);
      }
      locks_.push_back(strategy.make(own));
    }
  }
  HuntedLock(const HuntedLock&) = delete;
  HuntedLock& operator=(const HuntedLock&) = delete;
  ~HuntedLock() override {
    for (const auto& [name, held] : held_) judge_.died(client_, held.place.key);
  }

  StoreResult<void> connect() override {
    for (const auto& lock : locks_) {
      if (auto connected = lock->connect(); !connected) return connected;
    }
    return {};
  }

  AcquireResult acquire(const AcquireRequest& request) override {
    const std::optional<Place> place = place_of(request.key);
    if (!place) return locks_.front()->acquire(request);
    AcquireRequest own = request;
    own.key = place->name;
    own.ttl = of_client(uses_.ttls);
    judge_.asks(client_, place->key, place->name);
    LockStrategy& lock = *locks_[place->database];
    AcquireResult result = lock.acquire(own);
    if (!result.lease) {
      judge_.gave_up(client_, place->key, result.outcome);
      return result;
    }
    judge_.granted(client_, place->key, *result.lease);
    Held& held = held_.emplace(request.key, Held{.place = *place}).first->second;
    if (uses_.reenters && env_.random() % 2 == 0) enter_again(lock, own, held);
    result.lease->key = std::string(request.key);
    return result;
  }

  ReleaseResult release(const Lease& lease) override {
    const auto found = held_.find(lease.key);
    if (found == held_.end()) return locks_.front()->release(lease);
    const Held held = std::move(found->second);
    held_.erase(found);
    judge_.leaves(client_, held.place.key);
    LockStrategy& lock = *locks_[held.place.database];
    if (held.inner) lock.release(*held.inner);
    Lease own = lease;
    own.key = held.place.name;
    ReleaseResult result = lock.release(own);
    judge_.released(client_, held.place.key, result.outcome);
    return result;
  }

 private:
  struct Place {
    int key = 0;
    std::size_t database = 0;
    std::string name;  ///< in the database
  };
  struct Held {
    Place place;
    std::optional<Lease> inner{};  ///< of the second acquisition
  };

  /// Nothing for keys that no other client wants.
  std::optional<Place> place_of(std::string_view key) const {
    const std::size_t begin = key.rfind(':') + 1;
    const auto number = parse_number<int>(key.substr(begin, key.find('}', begin) - begin));
    if (!number || *number >= uses_.keys) return std::nullopt;
    return Place{.key = *number,
                 .database = static_cast<std::size_t>(*number % uses_.databases),
                 .name = fmt::format("{}{}}}", key.substr(0, begin), *number / uses_.databases)};
  }

  Duration of_client(const std::vector<Duration>& ttls) const {
    return ttls[static_cast<std::size_t>(client_) % ttls.size()];
  }

  /// Half of the time it gives the inner lock back at once, otherwise with the outer one.
  void enter_again(LockStrategy& lock, AcquireRequest request, Held& held) {
    request.ttl = of_client(uses_.inner_ttls);
    request.deadline = env_.now();  // one attempt
    AcquireResult inner = lock.acquire(request);
    if (!inner.lease) return;
    if (env_.random() % 2 == 0) {
      lock.release(*inner.lease);
    } else {
      held.inner = std::move(inner.lease);
    }
  }

  Env& env_;
  const int client_;
  const Uses& uses_;
  Judge& judge_;
  std::vector<std::unique_ptr<LockStrategy>> locks_;  ///< by their databases
  std::map<std::string, Held, std::less<>> held_;     ///< by key
};

}  // namespace lockbench::simulate
