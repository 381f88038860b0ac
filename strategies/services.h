#pragma once

#include <memory>
#include <mutex>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockbench {

/// What the clients of one run share, each kind at most once: connection factories, in-process lock
/// tables, schedulers, notification hubs. Owned by the runner, never global, and outlives every
/// strategy that was made with it. Thread-safe. Services are destroyed in the reverse order of
/// their making, so one may use those that were there before it.
class Services {
 public:
  Services() = default;
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;
  ~Services() {
    while (!order_.empty()) order_.pop_back();
  }

  /// Puts an implementation in place. Must come before the first `get<T>()`.
  template <class T>
  void provide(std::shared_ptr<T> service) {
    const std::scoped_lock lock(mutex_);
    insert<T>(std::move(service));
  }

  /// The run's only T; made by `make()`, which returns something that converts to shared_ptr<T>, if
  /// there is none yet. `make` may ask for other services.
  template <class T, class Make>
  T& get_or_make(Make&& make) {
    const std::scoped_lock lock(mutex_);
    const auto found = by_type_.find(typeid(T));
    if (found != by_type_.end()) return *static_cast<T*>(found->second);
    return insert<T>(make());
  }

 private:
  template <class T>
  T& insert(std::shared_ptr<T> service) {
    T& reference = *service;
    by_type_[typeid(T)] = service.get();
    order_.push_back(std::move(service));
    return reference;
  }

  std::recursive_mutex mutex_;
  std::unordered_map<std::type_index, void*> by_type_;
  std::vector<std::shared_ptr<void>> order_;
};

}  // namespace lockbench
