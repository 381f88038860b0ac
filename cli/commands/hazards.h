#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/option.h"
#include "hazards/player.h"
#include "results/file/model.h"

namespace lockbench::cli {

// The parts of `lockbench hazards`.

std::vector<Option> hazard_options();

/// Names and globs ("crash-*", "all"; none at all: all).
tl::expected<std::vector<const hazards::Scenario*>, UsageError> select_scenarios(
    const std::vector<std::string>& patterns, bool quick);

/// What was asked for and is part of this build. What is not is skipped, or an error if named.
tl::expected<std::vector<const Descriptor*>, UsageError> select_built(
    const std::vector<std::string>& patterns, std::vector<results::Skipped>& skipped);

/// hazards --dose
tl::expected<int, UsageError> play_doses(const RunOptions& options);

}  // namespace lockbench::cli
