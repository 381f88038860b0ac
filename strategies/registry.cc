#include "strategies/registry.h"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <string>
#include <tuple>

namespace lockbench {
namespace {

// A deque, as descriptors are handed out by address. A function's static, as registrations run in
// any order before main.
std::deque<Descriptor>& registered() {
  static std::deque<Descriptor> strategies;
  return strategies;
}

auto catalogue_order(const Descriptor* strategy) {
  return std::tuple(strategy->traits.promises_exclusion, strategy->backend != "local",
                    strategy->backend, strategy->name);
}

}  // namespace

std::vector<const Descriptor*> all_strategies() {
  std::vector<const Descriptor*> strategies;
  for (const Descriptor& strategy : registered()) strategies.push_back(&strategy);
  std::sort(strategies.begin(), strategies.end(),
            [](const auto* a, const auto* b) { return catalogue_order(a) < catalogue_order(b); });
  return strategies;
}

const Descriptor* find_strategy(std::string_view name) {
  for (const Descriptor& strategy : registered()) {
    if (strategy.name == name) return &strategy;
  }
  return nullptr;
}

Registration::Registration(Descriptor descriptor) {
  if (find_strategy(descriptor.name) != nullptr) {
    throw std::logic_error("two strategies are called " + std::string(descriptor.name));
  }
  registered().push_back(std::move(descriptor));
}

}  // namespace lockbench
