#pragma once

#include <cmath>
#include <numbers>

#include "strategies/random.h"

namespace lockbench::loadgen {

// Written out because the standard library's distributions differ between implementations, and a
// seed must give the same load everywhere.

/// Uniform in [0, 1).
inline double draw_unit(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// Exponential with mean 1; below 37, the limit of 53 random bits.
inline double draw_exponential(Random& random) { return -std::log1p(-draw_unit(random)); }

/// Normal with mean 0 and variance 1 (Box and Muller, A note on the generation of random normal
/// deviates, 1958).
inline double draw_normal(Random& random) {
  const double radius = std::sqrt(2 * draw_exponential(random));
  return radius * std::cos(2 * std::numbers::pi * draw_unit(random));
}

}  // namespace lockbench::loadgen
