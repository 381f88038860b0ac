#include "cli/console/session.h"

#include <fmt/format.h>

#include "cli/console/deploy.h"
#include "cli/console/exit_code.h"
#include "cli/console/facts.h"

namespace lockbench::cli {

Session::Session(bool quiet, bool status_line, std::string stopping)
    : console_(stderr, status_line && is_terminal(stderr), quiet) {
  prepare_signals();
  on_signal_.emplace(stop_, console_, std::move(stopping));
}

tl::expected<std::optional<deployment::Deployment>, UsageError> Session::deploy(
    const LoadOptions& options, std::vector<Selected>& selected,
    std::vector<results::Skipped>& skipped) {
  auto deployment = cli::deploy(options, selected, skipped, stop());
  // A failure after the stop is a consequence of it.
  if (stopped()) return std::nullopt;
  if (!deployment) return tl::unexpected(deployment.error());
  warn_of(build_facts());
  for (const std::string& line : deployment->warnings) console_.warn("warning: " + line);
  for (const results::Skipped& one : skipped) {
    console_.note(fmt::format("skipped: {}: {}", one.strategy, one.reason));
  }
  return *std::move(deployment);
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
