#pragma once

#include <algorithm>
#include <functional>
#include <map>
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

/// The same, but of siblings with the same fields, such as distributions, only the first is opened:
/// a later one that has fewer shows nothing new.
inline std::vector<nlohmann::json::json_pointer> distinct_places(
    const nlohmann::json& document, const std::function<bool(const std::string&)>& opaque) {
  using Names = std::set<std::string>;
  std::map<std::string, std::vector<Names>> opened;
  return places(document, [&](const std::string& at) {
    const nlohmann::json::json_pointer place(at);
    if (opaque(at)) return true;
    if (place.empty() || !document.at(place).is_object()) return false;
    Names names;
    for (const auto& [name, field] : document.at(place).items()) names.insert(name);
    std::vector<Names>& siblings = opened[place.parent_pointer().to_string()];
    for (const Names& seen : siblings) {
      if (std::includes(seen.begin(), seen.end(), names.begin(), names.end())) return true;
    }
    siblings.push_back(std::move(names));
    return false;
  });
}

/// In the samples: where any name may stand.
inline bool is_map(const std::string& at) {
  static const std::set<std::string> maps = {"/workload", "/environment/servers",
                                             "/hazards/0/evidence", "/runs/0/commands"};
  return maps.contains(at);
}

/// In the samples: fields that are left out where there is nothing to say.
inline bool may_be_left_out(const std::string& at) {
  static const std::set<std::string> fields = {"/capacity",
                                               "/capacity/0/violated",
                                               "/experiment",
                                               "/experiment/points/1/violated",
                                               "/findings",
                                               "/hazards",
                                               "/locks",
                                               "/observed",
                                               "/runs/0/acquire_by_mode",
                                               "/runs/0/audit/undecided",
                                               "/runs/0/generator/busiest_thread_share",
                                               "/runs/0/generator/clients_on",
                                               "/runs/0/generator/stack_high_water_bytes",
                                               "/runs/0/generator/threads",
                                               "/runs/0/load/hot_set",
                                               "/runs/0/load/trace",
                                               "/runs/0/ranks",
                                               "/runs/0/transactions",
                                               "/sources"};
  return fields.contains(at);
}

}  // namespace lockbench::results
