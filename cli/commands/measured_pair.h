#pragma once

#include <optional>
#include <string>

#include "results/file/model.h"

namespace lockbench::cli {

/// Two configurations of `run`, as TOML files.
struct PairOptions {
  std::string a, b;
  std::optional<int> repeat;  ///< in place of the files'
  int least_repeat = 1;       ///< fewer are refused
  bool quiet = false;
};

struct ResultPair {
  results::Result a, b;
  std::string file_a, file_b;
  int code = 0;  ///< to exit with, as far as it is known: of the runs
};

/// Measures both in turn, each on servers of its own, so that the state of the machine affects both
/// alike: A, B, then B, A, and so on. If one passes proxies, the other does too. Saves both
/// results. A mistake in a file is a UsageError before any server is started.
ResultPair measure_pair(const PairOptions& options);

}  // namespace lockbench::cli
