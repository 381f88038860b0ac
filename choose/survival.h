#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "choose/requirements.h"

namespace lockbench::choose {

/// The faults that have a word of their own: "crash", "pause".
const std::vector<Survival>& fault_words();

/// For such a word, a scenario's name or a glob over scenarios; nothing if it is none of them.
std::optional<Survival> find_survival(std::string_view text);

/// The basic faults that are not waived, then those that the user named.
std::vector<Survival> faults_to_survive(const Requirements& requirements);

}  // namespace lockbench::choose
