#include "cli/options/select.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "cli/options/text.h"

namespace lockbench::cli {
namespace {

bool is_glob(std::string_view pattern) {
  return pattern == "all" || pattern.find_first_of("*?[") != std::string_view::npos;
}

UsageError no_such_strategy(const std::string& pattern,
                            const std::vector<const Descriptor*>& catalogue) {
  // Probably a value whose option is missing; its secret must not be shown.
  if (pattern.find("://") != std::string::npos || pattern.find('=') != std::string::npos) {
    return UsageError(
        "a URL is not a strategy: servers are given with --redis URL, --postgres DSN, --zookeeper "
        "HOSTS");
  }
  if (is_glob(pattern)) {
    return UsageError("no strategy matches \"{}\" (lockbench list shows all)", pattern);
  }
  std::vector<std::string_view> names;
  names.reserve(catalogue.size());
  for (const Descriptor* strategy : catalogue) names.push_back(strategy->name);
  return UsageError("no such strategy \"{}\"{} (lockbench list shows all)", pattern,
                    did_you_mean(pattern, names));
}

}  // namespace

bool matches(const std::string& pattern, std::string_view name) {
  return pattern == "all" || fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
}

std::vector<const Descriptor*> with_absent(std::vector<const Descriptor*> built) {
  const auto absent = absent_strategies();
  built.insert(built.end(), absent.begin(), absent.end());
  return built;
}

std::vector<Selected> select_strategies(const std::vector<std::string>& patterns,
                                        const std::vector<const Descriptor*>& catalogue) {
  std::vector<Selected> selected;
  for (const std::string& pattern : patterns.empty() ? std::vector<std::string>{"all"} : patterns) {
    bool found = false;
    for (const Descriptor* strategy : catalogue) {
      if (!matches(pattern, strategy->name)) continue;
      found = true;
      const bool named = !is_glob(pattern);
      const auto same = std::ranges::find(selected, strategy, &Selected::strategy);
      if (same == selected.end()) {
        selected.push_back({strategy, named});
      } else {
        same->named = same->named || named;
      }
    }
    if (!found) throw no_such_strategy(pattern, catalogue);
  }
  return selected;
}

void check_waiting(const std::vector<Selected>& selected, const std::optional<WaitPolicy>& wait) {
  if (!wait) return;
  for (const auto& [strategy, named] : selected) {
    const auto& choices = strategy->traits.waiting_choices;
    if (!named || std::ranges::count(choices, wait->kind) > 0) continue;
    std::vector<std::string_view> allowed;
    allowed.reserve(choices.size());
    for (const WaitKind kind : choices) allowed.push_back(to_string(kind));
    throw UsageError("--wait: {} cannot wait by {}: {}", strategy->name, to_string(wait->kind),
                     allowed.empty() ? std::string("its waiting policy is fixed")
                                     : fmt::format("allowed: {}", fmt::join(allowed, ", ")));
  }
}

void check_renewal(const std::vector<Selected>& selected, const std::optional<RenewPolicy>& renew,
                   Duration ttl) {
  if (!renew || renew->kind == RenewPolicy::Kind::off) return;
  if (renew->kind == RenewPolicy::Kind::every && renew->period >= ttl) {
    throw UsageError("--renew: the renewal interval ({}) must be shorter than the TTL ({})",
                     format_duration(renew->period), format_duration(ttl));
  }
  for (const auto& [strategy, named] : selected) {
    if (!named || strategy->traits.renewable) continue;
    throw UsageError("--renew: {} cannot be renewed by a timer: only off is allowed",
                     strategy->name);
  }
}

std::vector<Selected> select_for_load(const LoadOptions& options,
                                      std::vector<const Descriptor*> built) {
  std::vector<Selected> selected =
      select_strategies(options.strategies, with_absent(std::move(built)));
  const StrategyOptions& asked = options.workload.strategy;
  check_waiting(selected, asked.wait);
  check_renewal(selected, asked.renew, options.workload.ttl);
  return selected;
}

}  // namespace lockbench::cli
