#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/hunt.h"
#include "tests/support/around.h"

namespace lockbench::test {

/// A bug of a published lock, as a mistake in one of our own or as a fault that it does not
/// declare.
struct KnownBug {
  std::string_view name;   ///< as a test's name
  std::string_view what;   ///< in a few words
  std::string_view where;  ///< project and number, or article
  simulate::Oracle oracle = simulate::Oracle::overlap;
  std::uint64_t seed = 0;  ///< near the first that shows it
  Descriptor with, without;
};

/// All that can be simulated. The reference is valid until the program ends.
const std::vector<KnownBug>& known_bugs();

// Its parts.
std::vector<KnownBug> bugs_on_etcd();
std::vector<KnownBug> bugs_on_zookeeper();

inline const Descriptor& registered(std::string_view name) {
  const Descriptor* const strategy = find_strategy(name);
  if (strategy == nullptr) throw std::logic_error("no such strategy: " + std::string(name));
  return *strategy;
}

/// A strategy with the mistaken lock in place of its own.
template <class Lock>
Descriptor like(std::string_view name) {
  Descriptor strategy = registered(name);
  strategy.make = wrapping<Lock>(name);
  return strategy;
}

/// The first seed from `first` on with which the strategy's oracle finds something; nothing: none
/// of `most` does.
struct Hit {
  simulate::Verdict verdict;
  std::uint64_t seeds = 0;  ///< played for it
};
std::optional<Hit> hunt_for(simulate::Oracle oracle, const Descriptor& strategy,
                            std::uint64_t first, std::uint64_t most);

}  // namespace lockbench::test
