#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "choose/requirements.h"

namespace lockbench::choose {

/// A word for people, and the scenarios that it stands for, with blanks in between.
struct FaultWord {
  std::string_view word, scenarios;
  // See Survival.
  std::string_view fenced = {}, otherwise = {};
  bool takes_a_server = false;
};

std::span<const FaultWord> fault_words();

/// A word, a scenario's name or a glob over these; nothing if it is none of them.
std::optional<Survival> find_survival(std::string_view text);

/// Whether the scenario asks what a resource that checks fencing numbers does.
bool needs_fencing_resource(std::string_view scenario);

}  // namespace lockbench::choose
