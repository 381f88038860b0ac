#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "results/file/model.h"
#include "results/tables/text.h"

namespace lockbench::results {

/// The items of each key, in the order of the keys' first items. They belong to `items`.
template <class Item, class KeyOf>
auto grouped(const std::vector<Item>& items, KeyOf key_of) {
  using Key = std::decay_t<std::invoke_result_t<KeyOf, const Item&>>;
  std::vector<std::pair<Key, std::vector<const Item*>>> groups;
  std::map<Key, std::size_t> places;
  for (const Item& item : items) {
    const auto [place, fresh] = places.try_emplace(std::invoke(key_of, item), groups.size());
    if (fresh) groups.push_back({place->first, {}});
    groups[place->second].second.push_back(&item);
  }
  return groups;
}

/// The keys of these groups.
template <class Groups>
auto keys_of(const Groups& groups) {
  return each_of(groups, [](const auto& group) { return group.first; });
}

/// Tells the loads of this result apart: "demand at 350/s", "alone, RTT 1 ms", "1k locks held",
/// "5 nodes, 2 down, 1 client", in a sweep "saturated, 10 clients".
std::string label(const Load& load, const Result& result);

/// Whether the runs are those of an experiment, which varies held locks or nodes.
bool is_experiment(const Result& result);

/// Whether the option, "rate" or "clients", had several values: a load at each of them.
bool is_swept(const Result& result, const std::string& option);
/// Whether one of them had.
bool is_sweep(const Result& result);

/// Whether some runs had different loads.
bool loads_differ(const Result& result);

/// Whether runs had different loads that each answer their own question, unlike an experiment's.
bool has_several_loads(const Result& result);

/// "redis-queue", with its load if the result has several.
std::string name_of(const Run& run, const Result& result);

/// One result per load, with a workload that describes the load, in the order of their first runs.
std::vector<Result> split_by_load(const Result& result);

/// The number of an option in a result's workload; nothing if there is none.
std::optional<double> workload_number(const Result& result, const std::string& key);

/// The text of that name in a workload, or in the evidence of a play; empty if there is none.
std::string text_in(const std::map<std::string, OptionValue>& values, const std::string& name);

/// As people read it: "yes", "0.002", "redis-* etcd"; empty for null.
std::string value_text(const OptionValue& value);

/// Differences in workload, machine or servers that make two results incomparable, one line each.
/// Repetitions, seed and the choice of strategies may differ.
std::vector<std::string> incompatibilities(const Result& a, const Result& b);
/// The first ones, and how many more there are.
std::string in_one_line(const std::vector<std::string>& differences);

}  // namespace lockbench::results
