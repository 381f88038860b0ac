#pragma once

#include <string>

#include "choose/answer.h"

namespace lockbench::choose {

struct TextLook {
  bool markdown = false;
  int width = 0;  ///< in columns; 0: lines are not folded
};

/// The answer for people: which strategies qualify, why the first is best, its settings, and why
/// the others are ruled out.
std::string to_text(const Answer& answer, const TextLook& look);

/// The same for programs; see choose/README.md for its fields.
std::string to_json(const Answer& answer);

}  // namespace lockbench::choose
