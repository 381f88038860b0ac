#pragma once

#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "strategies/duration.h"

namespace lockbench::loadgen {

/// A load that is not measured. What is not said is as it was measured.
struct Extrapolation {
  std::optional<double> clients;
  std::optional<Duration> rtt;  ///< added to what there is

  std::string text() const;
};

/// "clients=2000,rtt=1ms", or one of them. The error quotes the culprit and says what is allowed.
tl::expected<Extrapolation, std::string> parse_extrapolation(const std::string& text);

}  // namespace lockbench::loadgen
