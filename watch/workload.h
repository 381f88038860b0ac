#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/duration.h"
#include "watch/ledger.h"

namespace lockbench::watch {

/// An observed workload, in the terms of `run`, `capacity` and `choose`.
struct ObservedWorkload {
  double rate = 0;
  bool constant_arrival = false;  ///< else Poisson
  std::uint64_t clients = 1, keys = 1;
  double key_skew = 0;
  Duration work_p50{}, work_p99{};
  std::optional<Duration> ttl;
  double shared_share = 0;
  std::vector<std::pair<double, Duration>> hold;  ///< quantiles
  std::vector<std::string> remarks;               ///< what is approximate in it, a sentence each
};

/// The error says that too little was seen.
tl::expected<ObservedWorkload, std::string> workload_of(const Usage& usage);

/// The maximum-likelihood Zipf exponent of these acquisitions by lock; 0 if they may be uniform.
double fit_zipf(const std::vector<std::uint64_t>& by_lock);

/// The contents of a file for --hold quantiles:FILE.
std::string quantiles_text(const ObservedWorkload& workload);
/// The contents of a file for --config; `hold_file` is the path of the quantiles.
std::string toml_text(const ObservedWorkload& workload, std::string_view hold_file);

/// Writes `path` and, next to it, the quantiles ("workload.toml" and "workload.hold"). The error
/// names the file.
tl::expected<void, std::string> write_workload(const ObservedWorkload& workload,
                                               const std::string& path);

}  // namespace lockbench::watch
