#include "cli/console/session.h"

#include <fmt/format.h>

#include "cli/console/deploy.h"
#include "cli/console/exit_code.h"
#include "cli/console/facts.h"
#include "cli/console/ranks.h"

namespace lockbench::cli {

namespace {

std::unique_ptr<Events> events_of(const OutputOptions& output) {
  return output.events.empty() ? nullptr : must(Events::open(output.events), "--events");
}

}  // namespace

Session::Session(const OutputOptions& output, bool status_line, std::string stopping)
    : console_(stderr, status_line && is_terminal(stderr), output.quiet, events_of(output)) {
  prepare_signals();
  on_signal_.emplace(stop_, console_, std::move(stopping));
  if (const Ranks* const ranks = Ranks::joined()) ranks->warn(console_);
}

namespace {

/// Private servers listen on this host alone.
void check_reach(const Ranks& ranks, const deployment::Deployment& deployment) {
  const std::string far = ranks.beyond_loopback();
  if (far.empty() || deployment.stores.empty()) return;
  const bool only_counter = deployment.stores.size() == 1 && deployment.stores.contains("counter");
  if (only_counter) {
    throw UsageError("{}: give --counter-redis URL, with --resource redis, for the counter", far);
  }
  throw UsageError("{}: give --{} with a URL that all hosts reach", far,
                   deployment.stores.begin()->first);
}

}  // namespace

std::optional<deployment::Deployment> Session::deploy(const LoadOptions& options,
                                                      std::vector<Selected>& selected,
                                                      std::vector<results::Skipped>& skipped) {
  auto deployed = cli::deploy(options, selected, skipped, stop());
  // A failure after the stop is a consequence of it.
  if (stopped()) return std::nullopt;
  deployment::Deployment deployment = must(std::move(deployed));
  if (const Ranks* const ranks = Ranks::joined()) check_reach(*ranks, deployment);
  warn_of(build_facts());
  for (const std::string& line : deployment.warnings) console_.warn("warning: " + line);
  for (const results::Skipped& one : skipped) {
    console_.note(fmt::format("skipped: {}: {}", one.strategy, one.reason));
  }
  return deployment;
}

void Session::warn_of(const results::Build& build) {
  if (figures_can_be_trusted(build)) return;
  console_.warn(fmt::format("warning: this is a {} build: its figures are not to be trusted",
                            build.build_type.empty() ? "non-optimised" : build.build_type));
}

int Session::interrupted_early() {
  console_.warn("interrupted before the load began: nothing was measured");
  return exit_code::kInterrupted;
}

}  // namespace lockbench::cli
