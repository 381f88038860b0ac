#pragma once

#include <string>

#include "choose/answer.h"
#include "results/tables/show.h"

namespace lockbench::choose {

/// The answer for people, as text or Markdown: which strategies qualify, why the first is best, its
/// settings, and why the others are ruled out.
std::string to_text(const Answer& answer, const results::Look& look);

/// The same for programs; see choose/README.md for its fields.
std::string to_json(const Answer& answer);

}  // namespace lockbench::choose
