#include "results/file/loads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "results/tables/text.h"

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

/// Nothing if it is not a number.
std::optional<double> number_of(const OptionValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* broken = std::get_if<double>(&value)) return *broken;
  return std::nullopt;
}

/// Whether the values are equal, even if one is a whole number or was read in another unit.
bool same_value(const OptionValue& a, const OptionValue& b) {
  constexpr double kRounding = 1e-9;  // relative, by conversion from another unit
  const auto x = number_of(a), y = number_of(b);
  if (!x || !y) return a == b;
  // An infinite number equals only itself.
  return *x == *y || std::abs(*x - *y) <= kRounding * std::min(std::abs(*x), std::abs(*y));
}

/// Which runs there are, and not how they are made.
constexpr std::array<std::string_view, 4> kFree{"strategies", "client", "repeat", "seed"};
/// An option of private servers; older files lack it.
constexpr const char* kTls = "tls";

bool may_differ(std::string_view option) {
  return option == kTls || std::ranges::find(kFree, option) != kFree.end();
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongestValue = 40;
  return text.empty() ? "none" : clip(printable(text), kLongestValue);
}

/// Proxies cost time, even if they add no delay, and so does TLS.
std::string connections_of(const Result& result) {
  const bool proxies =
      result.workload.contains("through_proxies") || workload_number(result, "rtt").value_or(0) > 0;
  const auto tls = result.workload.find(kTls);
  const bool secured = tls != result.workload.end() && same_value(tls->second, true);
  return fmt::format("{}{}", proxies ? "through proxies" : "direct", secured ? " with TLS" : "");
}

/// Firmware and kernel reserve varying amounts.
std::string gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.0f} GiB", std::round(static_cast<double>(bytes) / (1 << 30)));
}

}  // namespace

std::string label(const Load& load, const Result& result) {
  std::string text = load.name.empty() ? "load" : load.name;
  if (load.held_locks) {
    text = fmt::format("{} lock{} held", human_count(static_cast<double>(*load.held_locks)),
                       *load.held_locks == 1 ? "" : "s");
  }
  if (load.nodes) text = label(*load.nodes, load.clients);
  if (load.rate) {
    // Rates of a sweep may be closer to each other than three digits show.
    text += fmt::format(" at {}/s", is_swept(result, "rate") ? fmt::format("{}", *load.rate)
                                                             : human_number(*load.rate));
  }
  if (is_swept(result, "clients")) {
    text += fmt::format(", {} client{}", load.clients, load.clients == 1 ? "" : "s");
  }
  if (is_swept(result, "pool") && load.pool) text += fmt::format(", pool of {}", *load.pool);
  if (load.rtt_seconds > 0) text += fmt::format(", RTT {}", human_seconds(load.rtt_seconds));
  return text;
}

bool is_experiment(const Result& result) {
  return std::ranges::any_of(result.runs,
                             [](const Run& run) { return run.load.held_locks || run.load.nodes; });
}

bool is_swept(const Result& result, const std::string& option) {
  const auto found = result.workload.find(option);
  return found != result.workload.end() &&
         std::holds_alternative<std::vector<std::string>>(found->second);
}

bool is_sweep(const Result& result) {
  return is_swept(result, "rate") || is_swept(result, "clients") || is_swept(result, "pool");
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
  return fmt::format("{} ({})", run.strategy, label(run.load, result));
}

std::vector<Result> split_by_load(const Result& result) {
  Result rest = result;
  rest.runs.clear();
  std::vector<Result> results;
  for (const Run& run : result.runs) {
    const auto same = std::ranges::find_if(
        results, [&](const Result& one) { return one.runs.front().load == run.load; });
    Result& its = same == results.end() ? results.emplace_back(rest) : *same;
    its.runs.push_back(run);
    its.workload["load"] = std::vector<std::string>{run.load.name};
    its.workload["clients"] = static_cast<std::int64_t>(run.load.clients);
    its.workload["hold"] = run.load.hold_seconds;
    its.workload["rate"] = run.load.rate ? OptionValue(*run.load.rate) : OptionValue(nullptr);
    its.workload["rtt"] = run.load.rtt_seconds;
    if (run.load.pool) its.workload["pool"] = static_cast<std::int64_t>(*run.load.pool);
  }
  return results;
}

std::optional<double> workload_number(const Result& result, const std::string& key) {
  const auto found = result.workload.find(key);
  return found == result.workload.end() ? std::nullopt : number_of(found->second);
}

std::string text_in(const std::map<std::string, OptionValue>& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) return "";
  const auto* text = std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

std::string value_text(const OptionValue& value) { return std::visit(ValueText{}, value); }

std::vector<std::string> incompatibilities(const Result& a, const Result& b) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view what, const std::string& of_a, const std::string& of_b) {
    lines.push_back(fmt::format("{} {} and {}", shown(what), shown(of_a), shown(of_b)));
  };
  const auto compare = [&](std::string_view what, const std::string& of_a,
                           const std::string& of_b) {
    if (of_a != of_b) add(what, of_a, of_b);
  };
  // If one version lacked an option, it had the default.
  for (const auto& [option, value] : a.workload) {
    const auto other = b.workload.find(option);
    if (may_differ(option) || other == b.workload.end()) continue;
    if (!same_value(value, other->second)) {
      add(option, value_text(value), value_text(other->second));
    }
  }
  compare("connections", connections_of(a), connections_of(b));
  const Environment &on_a = a.environment, &on_b = b.environment;
  compare("cpu", on_a.cpu, on_b.cpu);
  compare("cores", std::to_string(on_a.cores), std::to_string(on_b.cores));
  compare("kernel", on_a.kernel, on_b.kernel);
  compare("memory", gibibytes(on_a.memory_bytes), gibibytes(on_b.memory_bytes));
  for (const auto& [name, server] : on_a.servers) {
    const auto other = on_b.servers.find(name);
    if (other != on_b.servers.end()) compare(name, server.version, other->second.version);
  }
  compare("build", a.lockbench.build_type, b.lockbench.build_type);
  return lines;
}

std::string in_one_line(const std::vector<std::string>& differences) {
  constexpr std::size_t kMost = 8;
  const auto first = std::span(differences).first(std::min(kMost, differences.size()));
  const std::size_t more = differences.size() - first.size();
  return fmt::format("{}{}", fmt::join(first, "; "),
                     more > 0 ? fmt::format("; {} more", more) : "");
}

}  // namespace lockbench::results
