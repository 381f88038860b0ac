#include "loadgen/run/key_chooser.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "loadgen/run/random.h"

namespace lockbench::loadgen {

KeyChooser::KeyChooser(int keys, double skew) : keys_(keys) {
  if (keys < 1 || !(skew >= 0) || !std::isfinite(skew)) {
    throw std::invalid_argument("keys must be at least 1, their skew at least 0 and finite");
  }
  if (skew == 0 || keys == 1) return;
  cumulative_.reserve(static_cast<std::size_t>(keys));
  double total = 0;
  for (int key = 0; key < keys; ++key) {
    total += std::pow(key + 1.0, -skew);
    cumulative_.push_back(total);
  }
}

int KeyChooser::pick(std::mt19937_64& random) const {
  if (keys_ == 1) return 0;
  const double unit = draw_unit(random);
  if (cumulative_.empty()) return static_cast<int>(unit * keys_);
  const auto found =
      std::upper_bound(cumulative_.begin(), cumulative_.end(), unit * cumulative_.back());
  // The product may round up to the total itself.
  return std::min(keys_ - 1, static_cast<int>(found - cumulative_.begin()));
}

}  // namespace lockbench::loadgen
