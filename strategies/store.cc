#include "strategies/store.h"

#include <map>

namespace lockbench {
namespace {

std::map<std::string_view, StoreRegistration::Make>& makers() {
  static std::map<std::string_view, StoreRegistration::Make> by_backend;
  return by_backend;
}

}  // namespace

StoreRegistration::StoreRegistration(std::string_view backend, Make make) {
  makers()[backend] = make;
}

std::vector<std::unique_ptr<Store>> make_stores(const Descriptor& strategy,
                                                const Endpoints& endpoints,
                                                Duration command_timeout) {
  std::vector<std::unique_ptr<Store>> stores;
  const auto make = makers().find(strategy.backend);
  const auto urls = endpoints.find(strategy.backend);
  if (make == makers().end() || urls == endpoints.end()) return stores;
  for (const std::string& url : urls->second) {
    stores.push_back(make->second(url, command_timeout));
    if (strategy.traits.nodes <= 1) break;
  }
  return stores;
}

}  // namespace lockbench
