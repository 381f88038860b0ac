#include "strategies/registry.h"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <string>
#include <tuple>

namespace lockbench {
namespace {

// A deque, as callers keep the descriptors' addresses. Static in a function, as registrations run
// before main in any order.
std::deque<Descriptor>& registered() {
  static std::deque<Descriptor> strategies;
  return strategies;
}

auto catalogue_order(const Descriptor* strategy) {
  return std::tuple(strategy->traits.promises_exclusion, store_traits(strategy->backend).servers,
                    strategy->backend, strategy->name);
}

std::vector<const Descriptor*> in_catalogue_order(bool built) {
  std::vector<const Descriptor*> strategies;
  for (const Descriptor& strategy : registered()) {
    if (strategy.not_built.empty() == built) strategies.push_back(&strategy);
  }
  std::sort(strategies.begin(), strategies.end(),
            [](const auto* a, const auto* b) { return catalogue_order(a) < catalogue_order(b); });
  return strategies;
}

}  // namespace

std::vector<const Descriptor*> all_strategies() { return in_catalogue_order(true); }

std::vector<const Descriptor*> absent_strategies() { return in_catalogue_order(false); }

const Descriptor* find_strategy(std::string_view name) {
  for (const Descriptor& strategy : registered()) {
    if (strategy.name == name && strategy.not_built.empty()) return &strategy;
  }
  return nullptr;
}

Registration::Registration(Descriptor descriptor) {
  if (find_strategy(descriptor.name) != nullptr) {
    throw std::logic_error("two strategies are called " + std::string(descriptor.name));
  }
  registered().push_back(std::move(descriptor));
}

AbsentStrategy::AbsentStrategy(std::string_view name, std::string_view backend,
                               std::string_view reason) {
  registered().push_back(Descriptor{.name = name, .backend = backend, .not_built = reason});
}

}  // namespace lockbench
