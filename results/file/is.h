#pragma once

#include <concepts>
#include <type_traits>

namespace lockbench::results {

/// T is U, const or not.
template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

}  // namespace lockbench::results
