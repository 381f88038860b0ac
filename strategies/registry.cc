#include "strategies/registry.h"

#include <algorithm>
#include <tuple>

namespace lockbench {
namespace {

auto catalogue_order(const Descriptor* strategy) {
  return std::tuple(strategy->traits.promises_exclusion, store_traits(strategy->backend).servers,
                    strategy->backend, strategy->name);
}

std::vector<const Descriptor*> in_catalogue_order(bool built) {
  auto strategies = Registration::all();
  std::erase_if(strategies, [&](const auto* one) { return one->not_built.empty() != built; });
  std::ranges::sort(strategies, {}, catalogue_order);
  return strategies;
}

}  // namespace

std::vector<const Descriptor*> all_strategies() { return in_catalogue_order(true); }

std::vector<const Descriptor*> absent_strategies() { return in_catalogue_order(false); }

const Descriptor* find_strategy(std::string_view name) {
  const Descriptor* const strategy = Registration::find(name);
  return strategy != nullptr && strategy->not_built.empty() ? strategy : nullptr;
}

}  // namespace lockbench
