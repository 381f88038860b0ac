#include <fmt/format.h>

#include <algorithm>

#include "cli/options/load_options.h"
#include "cli/options/value_types.h"

namespace lockbench::cli {
namespace {

ValueType<loadgen::Trace> trace_file() {
  const auto parse = [](const std::string& text) -> tl::expected<loadgen::Trace, std::string> {
    const auto file = path().parse(text);
    if (!file) return tl::unexpected(file.error());
    return loadgen::Trace::read(*file);
  };
  return parsed(parse, &loadgen::Trace::path);
}

}  // namespace

void LoadOptions::declare_keys(OptionList& options) {
  const auto set = [this](std::optional<int> keys) {
    workload.key_per_client = !keys;
    workload.keys = keys.value_or(workload.keys);
  };
  const auto get = [this] {
    return workload.key_per_client ? std::nullopt : std::optional(workload.keys);
  };
  options.add_custom("keys", "N", number_or_word(10'000'000, "per-client", set, get),
                     "distinct locks; per-client: one for each client, without contention", "1");
  options.add("key-skew", "S", workload.key_skew, number(0, 10),
              "Zipf exponent of the choice among the keys; 0: uniform");
  options.add("hot-set", "SET", workload.hot_set,
              parsed(loadgen::HotSet::parse, &loadgen::HotSet::to_string),
              "a share of the sections wants a few of the keys, and others after a while: "
              "share=50%,keys=2500,move=10s; without move always the same",
              "none");
  options.add("trace", "FILE", workload.trace, trace_file(),
              "take the locks that the transactions of a trace take: lines of "
              "transaction,task,type,lock,mode; the warm-up uses up the first ones; the run ends "
              "with the trace, or after --duration (1h unless set)",
              "none");
}

void LoadOptions::complete_keys(const OptionList& options) {
  if (workload.key_skew > 0 && workload.key_per_client) {
    throw UsageError("--key-skew requires --keys N: with --keys per-client no key is chosen");
  }
  if (workload.hot_set && workload.key_skew > 0) {
    throw UsageError("--hot-set cannot be combined with --key-skew");
  }
  if (workload.hot_set && (workload.key_per_client || workload.hot_set->keys >= workload.keys)) {
    throw UsageError("--hot-set requires --keys N with N above its {} keys",
                     workload.hot_set->keys);
  }
  if (!workload.trace) return;
  for (const char* const name :
       {"keys", "key-skew", "hot-set", "shared-share", "locks-per-section"}) {
    if (!options.given(name)) continue;
    throw UsageError("--{} cannot be combined with --trace, which says which locks are taken",
                     name);
  }
  using loadgen::NamedLoad;
  const bool demand = std::find(loads.begin(), loads.end(), NamedLoad::demand) != loads.end();
  if (demand && !workload.rate) throw UsageError("--load demand requires --rate with --trace");
  workload.keys = workload.trace->keys;
}

}  // namespace lockbench::cli
