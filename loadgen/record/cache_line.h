#pragma once

#include <cstddef>

namespace lockbench::loadgen {

/// What two threads must not share if they write. A constant of our own: the standard library's
/// varies with compiler flags.
inline constexpr std::size_t kCacheLine = 64;

}  // namespace lockbench::loadgen
