#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace lockbench::results {

/// Pointers to everything in a document, itself included, but for what stands below one of
/// `opaque`.
inline std::vector<nlohmann::json::json_pointer> places(
    const nlohmann::json& document, const std::function<bool(const std::string&)>& opaque,
    const nlohmann::json::json_pointer& at = nlohmann::json::json_pointer()) {
  std::vector<nlohmann::json::json_pointer> found{at};
  const nlohmann::json& here = document.at(at);
  if (!here.is_structured() || opaque(at.to_string())) {
    return found;
  }
  for (const auto& [key, value] : here.items()) {
    const auto below = places(document, opaque, here.is_array() ? at / std::stoul(key) : at / key);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

/// The same, but of siblings with the same fields, such as distributions, only the first is opened.
inline std::vector<nlohmann::json::json_pointer> distinct_places(
    const nlohmann::json& document, const std::function<bool(const std::string&)>& opaque) {
  std::set<std::string> opened;
  return places(document, [&](const std::string& at) {
    const nlohmann::json::json_pointer place(at);
    std::string likeness = place.empty() ? "" : place.parent_pointer().to_string();
    for (const auto& [name, field] : document.at(place).items()) likeness += " " + name;
    return opaque(at) || (document.at(place).is_object() && !opened.insert(likeness).second);
  });
}

}  // namespace lockbench::results
