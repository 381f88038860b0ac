#pragma once

#include <cstddef>

namespace lockbench::loadgen {

/// Threads that write to the same line slow each other down. The standard library's constant is not
/// used, as it varies with compiler flags.
inline constexpr std::size_t kCacheLine = 64;

}  // namespace lockbench::loadgen
