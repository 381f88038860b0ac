#pragma once

#include <cmath>
#include <random>

namespace lockbench::loadgen {

/// Draws that are spelled out here rather than left to the standard library, whose distributions
/// differ between implementations: a seed must give the same load everywhere.

/// Uniform in [0, 1).
inline double draw_unit(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

/// Exponential with mean 1; below 37, as there are only 53 bits to draw from.
inline double draw_exponential(std::mt19937_64& random) { return -std::log1p(-draw_unit(random)); }

}  // namespace lockbench::loadgen
