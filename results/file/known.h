#pragma once

#include <optional>
#include <string>

namespace lockbench::results {

// Of what is not always known.

/// For people.
inline std::string yes_or_no(const std::optional<bool>& known) {
  if (!known) return "–";
  return *known ? "yes" : "no";
}

/// For CSV.
inline std::string true_or_false(const std::optional<bool>& known) {
  if (!known) return "";
  return *known ? "true" : "false";
}

}  // namespace lockbench::results
