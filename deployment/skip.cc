#include "deployment/skip.h"

#include <fmt/format.h>

#include <algorithm>

#include "deployment/fault_fit.h"

namespace lockbench::cli {
namespace {

using Done = tl::expected<void, UsageError>;

Done skip_unbuilt(std::vector<Selected>& selected, std::vector<results::Skipped>& skipped) {
  // Each round takes one reason's strategies out, so this ends.
  while (true) {
    const auto unbuilt = std::find_if(selected.begin(), selected.end(), [](const Selected& one) {
      return !one.strategy->not_built.empty();
    });
    if (unbuilt == selected.end()) return {};
    const std::string_view reason = unbuilt->strategy->not_built;
    const auto concerns = [&](const Descriptor& strategy) { return strategy.not_built == reason; };
    if (auto done = skip(concerns, reason, selected, skipped); !done) return done;
  }
}

/// Those without a shared mode, if some sections are to take it.
Done skip_unshared(const RunOptions& options, std::vector<Selected>& selected,
                   std::vector<results::Skipped>& skipped) {
  if (options.workload.shared_share <= 0) return {};
  return skip([](const Descriptor& strategy) { return !strategy.traits.shared; },
              "it has no shared mode, which --shared-share asks for", selected, skipped);
}

/// Those whose servers cannot have one of the faults.
Done skip_unfit(const RunOptions& options, std::vector<Selected>& selected,
                std::vector<results::Skipped>& skipped) {
  for (const loadgen::Fault& fault : options.faults) {
    const auto reason_for = [&](const Descriptor& strategy) {
      return unfit(fault, strategy, options);
    };
    // Each round takes one reason's strategies out, so this ends.
    while (true) {
      const auto first = std::find_if(selected.begin(), selected.end(), [&](const Selected& one) {
        return !reason_for(*one.strategy).empty();
      });
      if (first == selected.end()) break;
      const std::string reason = reason_for(*first->strategy);
      const auto concerns = [&](const Descriptor& strategy) {
        return reason_for(strategy) == reason;
      };
      if (auto done = skip(concerns, reason, selected, skipped); !done) return done;
    }
  }
  return {};
}

}  // namespace

Done skip(const std::function<bool(const Descriptor&)>& concerns, std::string_view reason,
          std::vector<Selected>& selected, std::vector<results::Skipped>& skipped) {
  for (const auto& [strategy, named] : selected) {
    if (!concerns(*strategy)) continue;
    if (named) {
      return tl::unexpected(
          UsageError{fmt::format("{} cannot run here: {}", strategy->name, reason)});
    }
    skipped.push_back({std::string(strategy->name), std::string(reason)});
  }
  std::erase_if(selected, [&](const Selected& one) { return concerns(*one.strategy); });
  if (selected.empty()) {
    return tl::unexpected(UsageError{fmt::format("nothing can run here: {}", reason)});
  }
  return {};
}

Done skip_unable(const RunOptions& options, std::vector<Selected>& selected,
                 std::vector<results::Skipped>& skipped) {
  Done done = skip_unbuilt(selected, skipped);
  if (done) done = skip_unshared(options, selected, skipped);
  if (done) done = skip_unfit(options, selected, skipped);
  return done;
}

}  // namespace lockbench::cli
