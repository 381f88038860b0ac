#pragma once

#include "cli/options/load_options.h"
#include "watch/families.h"
#include "watch/ledger.h"
#include "watch/source.h"

namespace lockbench::cli {

struct WatchOptions {
  static constexpr std::string_view kCommand = "watch";
  /// How long --once watches without --duration.
  static constexpr Duration kOnce = std::chrono::seconds(3);

  ServerUrls servers;
  watch::Request request;
  std::optional<std::string> name;  ///< the expression
  std::optional<Duration> held_longer, duration;
  bool once = false, no_screen = false;
  std::string workload;  ///< the file to write; empty: none
  MetricsOptions metrics;
  OutputOptions output;  ///< `out` is --record

  void declare(OptionList& options);
  void complete(const OptionList& options);

  watch::LedgerOptions ledger_options() const;
  /// How locks are grouped: by --name, by --locks, or by what their names begin with.
  watch::Families grouping() const;
};

}  // namespace lockbench::cli
