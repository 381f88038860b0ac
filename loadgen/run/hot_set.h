#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/duration.h"

namespace lockbench::loadgen {

/// A few keys that get much of the load. Every so often others take their place.
struct HotSet {
  double share = 0;                     ///< of the sections that want a hot key, 0 to 1
  int keys = 0;                         ///< that are hot at a time
  std::optional<Duration> moves_every;  ///< nothing: they stay hot

  /// Reads "share=50%,keys=2500,move=10s", in any order; the move may be missing.
  static tl::expected<HotSet, std::string> parse(std::string_view text);
  /// In the form that parse() reads.
  std::string to_string() const;

  bool operator==(const HotSet&) const = default;
};

}  // namespace lockbench::loadgen
