#pragma once

#include <random>
#include <vector>

namespace lockbench::loadgen {

/// Draws the key of a section: uniform, or Zipf (key k, from 0, has the exact weight 1/(k+1)^skew).
/// Read-only after construction, so all clients share it.
class KeyChooser {
 public:
  /// Throws std::invalid_argument unless there is a key and skew is finite and at least 0.
  KeyChooser(int keys, double skew);

  int pick(std::mt19937_64& random) const;

 private:
  int keys_;
  std::vector<double> cumulative_;  ///< weights of the keys up to each; empty without skew
};

}  // namespace lockbench::loadgen
