#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>

namespace lockbench::loadgen {

/// Threads that write to the same line slow each other down. Not the standard library's constant,
/// which varies with compiler flags.
inline constexpr std::size_t kCacheLine = 64;

/// Makes an atomic at least that value.
template <class T>
void raise_to(std::atomic<T>& atomic, std::type_identity_t<T> value) noexcept {
  T seen = atomic.load(std::memory_order_relaxed);
  while (seen < value && !atomic.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace lockbench::loadgen
