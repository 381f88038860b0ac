#include "strategies/store.h"

#include <map>

namespace lockbench {
namespace {

std::map<std::string_view, StoreKind>& kinds() {
  static std::map<std::string_view, StoreKind> by_name;
  return by_name;
}

}  // namespace

StoreRegistration::StoreRegistration(const StoreKind& kind) { kinds()[kind.name] = kind; }

std::vector<const StoreKind*> store_kinds() {
  std::vector<const StoreKind*> all;
  for (const auto& [name, kind] : kinds()) all.push_back(&kind);
  return all;
}

const StoreKind* find_store_kind(std::string_view backend) {
  const auto found = kinds().find(backend);
  const bool built = found != kinds().end() && found->second.not_built.empty();
  return built ? &found->second : nullptr;
}

std::vector<std::unique_ptr<Store>> make_stores(const Descriptor& strategy,
                                                const Endpoints& endpoints,
                                                Duration command_timeout) {
  std::vector<std::unique_ptr<Store>> stores;
  const StoreKind* const kind = find_store_kind(strategy.backend);
  if (kind == nullptr) return stores;
  for (const std::string& url : urls_of(strategy, endpoints)) {
    stores.push_back(kind->make(url, command_timeout));
    if (strategy.traits.nodes <= 1) break;
  }
  return stores;
}

}  // namespace lockbench
