#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/console/console.h"
#include "cli/console/signals.h"
#include "cli/options/options.h"
#include "cli/options/select.h"
#include "deployment/deployment.h"
#include "results/file/model.h"

namespace lockbench::cli {

/// A subcommand at work: where it talks, and the stop that a signal asks of it. Prepares the
/// signals, so it comes before the first thread, and outlives all that has its console. For one
/// thread, but for the console.
class Session {
 public:
  /// `status_line`: whether there may be one, on a terminal. `stopping` is noted when the first
  /// signal comes.
  explicit Session(bool quiet, bool status_line = true,
                   std::string stopping = std::string(kSavingAndStopping));

  Console& console() { return console_; }
  std::stop_token stop() const { return stop_.get_token(); }
  bool stopped() const { return stop_.stop_requested(); }

  /// deploy(), and then a word on all that is to be known before the servers are put under load: a
  /// build whose figures mislead, warnings, who was skipped. Nothing if a stop came first.
  tl::expected<std::optional<deployment::Deployment>, UsageError> deploy(
      const RunOptions& options, std::vector<Selected>& selected,
      std::vector<results::Skipped>& skipped);

  /// Warns if the figures of such a build are not to be trusted.
  void warn_of(const results::Build& build);

  /// Says that a stop left nothing to save. The exit code.
  int interrupted_early();

 private:
  Console console_;
  const std::stop_source stop_;
  std::optional<StopOnSignal> on_signal_;
};

}  // namespace lockbench::cli
