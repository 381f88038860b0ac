#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "results/file/model.h"

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

/// "demand at 350/s", "alone, RTT 1 ms", "1k locks held", "5 nodes, 2 down, 1 client": what tells
/// the loads of one result apart.
std::string label(const Load& load);

/// Whether the runs differ in what an experiment varies, held locks or nodes.
bool is_experiment(const Result& result);

/// Whether not all runs had the same load.
bool loads_differ(const Result& result);

/// Whether they had loads that each answer a question of its own, unlike those of an experiment.
bool has_several_loads(const Result& result);

/// "redis-queue", and its load where runs of the result differ in it.
std::string name_of(const Run& run, const Result& result);

/// A result for each load, which its workload describes, in the order of their first runs.
std::vector<Result> split_by_load(const Result& result);

/// The option's number in a result's workload; nothing if it has none of that name.
std::optional<double> workload_number(const Result& result, const std::string& key);

/// The text of that name in a workload, or in the evidence of a play; empty: it has none.
std::string text_in(const std::map<std::string, OptionValue>& values, const std::string& name);

/// As people read it: "yes", "0.002", "redis-* etcd"; empty for null.
std::string value_text(const OptionValue& value);

/// Whether the option of this key says where output goes, and nothing of what is measured.
bool is_of_output(std::string_view key);

/// Differences in workload, machine or servers that make two results incomparable, one line each.
/// Repetitions, seed, output and the choice of strategies may differ.
std::vector<std::string> incompatibilities(const Result& a, const Result& b);
/// The first ones, and how many more there are.
std::string in_one_line(const std::vector<std::string>& differences);

}  // namespace lockbench::results
