#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "choose/qualify.h"

namespace lockbench::choose {

/// What qualifying strategies are ranked by.
struct Yardstick {
  std::string figure;  ///< path of a run's number
  std::string why;
  bool higher_is_better = false;
};

/// `measured`: what the figures were measured under; nothing where none were.
Yardstick yardstick_of(const Requirements& requirements, const std::optional<Load>& measured);

struct Ranked {
  const Candidate* candidate = nullptr;
  std::optional<double> value{};  ///< median of the valid repetitions; nothing: not measured
  bool doubtful = false;          ///< there are only invalid ones: it counts as not measured
  /// Another one that qualifies on the same servers and survives everything that this one survives,
  /// and more.
  const Candidate* better = nullptr;
  std::vector<std::string> falls_to{};  ///< what `better` survives beyond
};

/// The strategies that qualify, best first: those that survived plays of the faults, before those
/// to which no play applies; strategies that another one dominates come last, because a better
/// figure does not make up for a fault; then by the figure, unmeasured ones last; then by name.
std::vector<Ranked> rank(const std::vector<Candidate>& candidates, const Yardstick& yardstick,
                         const Requirements& requirements, const Evidence& evidence);

}  // namespace lockbench::choose
