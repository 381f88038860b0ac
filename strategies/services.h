#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

namespace lockbench {

/// Objects that the clients of one run share, one of each type and name: connection factories,
/// in-process lock tables, schedulers, and a notification hub for each server. Owned by the runner,
/// never global; outlives every strategy made with it. Thread-safe. Services are destroyed in the
/// reverse order of their making, so a service may use earlier ones.
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
    insert<T>({}, std::move(service));
  }

  /// The run's T of this name; if there is none yet, `make()` makes it, returning a pointer that
  /// converts to shared_ptr<T>. `make` may ask for other services. A service of one server is named
  /// by the server's URL, which may contain secrets: names are not shown.
  template <class T, class Make>
  T& get_or_make(Make&& make, std::string_view name = {}) {
    const std::scoped_lock lock(mutex_);
    const auto found = by_name_.find(std::pair(std::type_index(typeid(T)), std::string(name)));
    if (found != by_name_.end()) return *static_cast<T*>(found->second);
    return insert<T>(std::string(name), make());
  }

  /// The run's T, default-constructed if there is none yet.
  template <class T>
  T& get() {
    return get_or_make<T>([] { return std::make_shared<T>(); });
  }

 private:
  template <class T>
  T& insert(std::string name, std::shared_ptr<T> service) {
    T& reference = *service;
    by_name_[{typeid(T), std::move(name)}] = service.get();
    order_.push_back(std::move(service));
    return reference;
  }

  std::recursive_mutex mutex_;
  std::map<std::pair<std::type_index, std::string>, void*> by_name_;
  std::vector<std::shared_ptr<void>> order_;
};

}  // namespace lockbench
