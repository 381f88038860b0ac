#include "results/file/loads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "results/tables/units.h"

namespace lockbench::results {
namespace {

std::string label(const Nodes& nodes, std::uint64_t clients) {
  std::string text = fmt::format("{} node{}", nodes.count, nodes.count == 1 ? "" : "s");
  if (nodes.down > 0) text += fmt::format(", {} down", nodes.down);
  if (nodes.frozen > 0) text += fmt::format(", {} frozen", nodes.frozen);
  if (nodes.slow > 0) {
    text += fmt::format(", {} slow by {}", nodes.slow, human_seconds(nodes.slow_seconds));
  }
  return text + fmt::format(", {} client{}", clients, clients == 1 ? "" : "s");
}

struct ValueText {
  std::string operator()(std::nullptr_t) const { return ""; }
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return fmt::format("{:.6g}", value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const std::vector<std::string>& value) const {
    return fmt::format("{}", fmt::join(value, " "));
  }
};

}  // namespace

std::string label(const Load& load) {
  std::string text = load.name.empty() ? "load" : load.name;
  if (load.held_locks) {
    text = fmt::format("{} lock{} held", human_count(static_cast<double>(*load.held_locks)),
                       *load.held_locks == 1 ? "" : "s");
  }
  if (load.nodes) text = label(*load.nodes, load.clients);
  if (load.rate) text += fmt::format(" at {}/s", human_number(*load.rate));
  if (load.rtt_seconds > 0) text += fmt::format(", RTT {}", human_seconds(load.rtt_seconds));
  return text;
}

bool is_experiment(const Result& result) {
  return std::any_of(result.runs.begin(), result.runs.end(),
                     [](const Run& run) { return run.load.held_locks || run.load.nodes; });
}

bool has_several_loads(const Result& result) {
  return loads_differ(result) && !is_experiment(result);
}

bool loads_differ(const Result& result) {
  const Load* first = nullptr;
  for (const Run& run : result.runs) {
    if (first == nullptr) first = &run.load;
    if (run.load != *first) return true;
  }
  return false;
}

std::string name_of(const Run& run, const Result& result) {
  if (!loads_differ(result)) return run.strategy;
  return fmt::format("{} ({})", run.strategy, label(run.load));
}

std::vector<Result> split_by_load(const Result& result) {
  Result rest = result;
  rest.runs.clear();
  std::vector<Result> results;
  for (const Run& run : result.runs) {
    const auto same = std::find_if(results.begin(), results.end(), [&](const Result& one) {
      return one.runs.front().load == run.load;
    });
    Result& its = same == results.end() ? results.emplace_back(rest) : *same;
    its.runs.push_back(run);
    its.workload["load"] = std::vector<std::string>{run.load.name};
    its.workload["clients"] = static_cast<std::int64_t>(run.load.clients);
    its.workload["hold"] = run.load.hold_seconds;
    its.workload["rate"] = run.load.rate ? OptionValue(*run.load.rate) : OptionValue(nullptr);
    its.workload["rtt"] = run.load.rtt_seconds;
  }
  return results;
}

std::optional<double> number_of(const OptionValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* broken = std::get_if<double>(&value)) return *broken;
  return std::nullopt;
}

std::optional<double> workload_number(const Result& result, const std::string& key) {
  const auto found = result.workload.find(key);
  return found == result.workload.end() ? std::nullopt : number_of(found->second);
}

std::string workload_text(const Result& result, const std::string& key) {
  const auto found = result.workload.find(key);
  if (found == result.workload.end()) return "";
  const auto* text = std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

std::string value_text(const OptionValue& value) { return std::visit(ValueText{}, value); }

bool same_value(const OptionValue& a, const OptionValue& b) {
  constexpr double kRounding = 1e-9;  // of another unit, as a share
  const auto x = number_of(a), y = number_of(b);
  if (!x || !y) return a == b;
  // An infinite number equals only itself.
  return *x == *y || std::abs(*x - *y) <= kRounding * std::min(std::abs(*x), std::abs(*y));
}

bool is_of_output(std::string_view key) {
  constexpr std::array<std::string_view, 14> kKeys{
      "out",  "format",         "columns", "quiet",  "config", "hdr",      "report",
      "push", "metrics_listen", "linger",  "resume", "record", "workload", "events"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

}  // namespace lockbench::results
