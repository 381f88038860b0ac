#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/console/console.h"
#include "strategies/thread.h"
#include "watch/ledger.h"
#include "watch/source.h"

namespace lockbench::cli {

/// The sources of one watch and the ledger that they fill, each source on a thread of its own.
class Watching {
 public:
  /// `console` must outlive it.
  Watching(std::vector<std::unique_ptr<watch::Source>> sources, watch::LedgerOptions options,
           watch::Families families, Console& console);
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  /// Reaches every source. The error names the one that cannot be reached.
  tl::expected<void, std::string> reach(const std::stop_token& stop);
  void begin();
  void end();

  watch::Picture read(TimePoint now);
  watch::Usage usage(TimePoint now) { return ledger_.usage(now); }

 private:
  watch::Ledger ledger_;
  Console& console_;
  std::vector<std::unique_ptr<watch::Source>> sources_;
  std::vector<Thread> threads_;  ///< last: they use the others
};

}  // namespace lockbench::cli
