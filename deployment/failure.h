#pragma once

#include <stdexcept>
#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "strategies/errors.h"

namespace lockbench::deployment {

/// A server or a client process did not do what was asked of it. Says nothing about a strategy.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The value; throws Failure where there is an error instead.
template <class T, class E>
T need(tl::expected<T, E> result) {
  if constexpr (std::is_same_v<E, StoreError>) {
    if (!result) throw Failure(result.error().message);
  } else {
    if (!result) throw Failure(result.error());
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Does the work; what it throws as Failure is the error.
template <class Work>
tl::expected<void, std::string> attempt(const Work& work) {
  try {
    work();
    return {};
  } catch (const Failure& failure) {
    return tl::unexpected<std::string>(failure.what());
  }
}

}  // namespace lockbench::deployment
