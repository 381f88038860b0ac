#pragma once

#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "strategies/duration.h"

namespace lockbench::loadgen {

/// A load to predict, not to measure. Empty members are as in the measured load.
struct Extrapolation {
  std::optional<double> clients;
  std::optional<Duration> rtt;  ///< added to the measured one

  std::string text() const;
};

/// Reads "clients=2000,rtt=1ms", or one of them. The error quotes the wrong part and says what is
/// allowed.
tl::expected<Extrapolation, std::string> parse_extrapolation(const std::string& text);

}  // namespace lockbench::loadgen
