#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench {

/// Registers an instance of T by its `name` when the program starts:
///   const Named<Thing> one({.name = "one", ...});
template <class T>
class Named {
 public:
  explicit Named(T one) {
    const std::string_view name = one.name;
    if (!by_name().emplace(name, std::move(one)).second) {
      throw std::logic_error("registered twice: " + std::string(name));
    }
  }

  /// By name.
  static std::vector<const T*> all() {
    std::vector<const T*> all;
    for (const auto& [name, one] : by_name()) all.push_back(&one);
    return all;
  }
  /// Null if there is none.
  static const T* find(std::string_view name) {
    const auto found = by_name().find(name);
    return found == by_name().end() ? nullptr : &found->second;
  }

 private:
  /// Static in a function, as registrations run before main in any order.
  static std::map<std::string_view, T>& by_name() {
    static std::map<std::string_view, T> all;
    return all;
  }
};

/// Every strategy of this build: controls first, then by backend and name.
std::vector<const Descriptor*> all_strategies();

/// The strategies that this build leaves out, in the same order.
std::vector<const Descriptor*> absent_strategies();

/// Null if this build has no strategy of that name.
const Descriptor* find_strategy(std::string_view name);

/// Registers a strategy when the program starts:
///   const Registration redis_mine(Descriptor{...});
using Registration = Named<Descriptor>;

}  // namespace lockbench
