#pragma once

#include <optional>

#include "results/file/model.h"

namespace lockbench::loadgen {

/// Adds a run's verdict to what is known of several: whether exclusion was broken in some of them,
/// promised or not. Nothing: none of them was audited.
inline void add_verdict(results::Verdict verdict, std::optional<bool>& broken) {
  if (verdict == results::Verdict::unaudited) return;
  broken = broken.value_or(false) || verdict != results::Verdict::exclusive;
}

}  // namespace lockbench::loadgen
