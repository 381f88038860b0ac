#pragma once

#include <random>
#include <vector>

namespace lockbench::loadgen {

/// Which of the keys a section takes: all alike, or some more than others (Zipf: key k, from 0,
/// with a weight of 1/(k+1)^skew, exactly). Built once; read-only, so all clients share it.
class KeyChooser {
 public:
  /// At least one key, and a finite skew of at least 0: else std::invalid_argument.
  KeyChooser(int keys, double skew);

  int pick(std::mt19937_64& random) const;

 private:
  int keys_;
  std::vector<double> cumulative_;  ///< weights of the keys up to each; empty without skew
};

}  // namespace lockbench::loadgen
