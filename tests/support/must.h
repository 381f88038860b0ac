#pragma once

#include <stdexcept>
#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace lockbench::test {

/// Throws std::runtime_error with the error if there is no value.
template <class T>
T must(tl::expected<T, std::string> result) {
  if (!result) throw std::runtime_error(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace lockbench::test
