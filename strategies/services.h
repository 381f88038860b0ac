#pragma once

#include <memory>
#include <mutex>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockbench {

/// Objects that the clients of one run share, one of each type: connection factories, in-process
/// lock tables, schedulers, notification hubs. Owned by the runner, never global; outlives every
/// strategy made with it. Thread-safe. Services are destroyed in the reverse order of their making,
/// so a service may use earlier ones.
class Services {
 public:
  Services() = default;
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;
  ~Services() {
    while (!order_.empty()) order_.pop_back();
  }

  /// Supplies the run's T. Must come before its first use.
  template <class T>
  void provide(std::shared_ptr<T> service) {
    const std::scoped_lock lock(mutex_);
    insert<T>(std::move(service));
  }

  /// The run's T; if there is none yet, `make()` makes it, returning a pointer that converts to
  /// shared_ptr<T>. `make` may ask for other services.
  template <class T, class Make>
  T& get_or_make(Make&& make) {
    const std::scoped_lock lock(mutex_);
    const auto found = by_type_.find(typeid(T));
    if (found != by_type_.end()) return *static_cast<T*>(found->second);
    return insert<T>(make());
  }

  /// The run's T, default-constructed if there is none yet.
  template <class T>
  T& get() {
    return get_or_make<T>([] { return std::make_shared<T>(); });
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
