#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "results/file/model.h"
#include "results/stats/threshold.h"

namespace lockbench::results {

// Runs of one load, each with a seed of its own, judged together by batch means (Law, Simulation
// Modeling and Analysis): each run is a batch, and what differs between them says how far they can
// be trusted. Samples of one run cannot say that, as waits in a queue follow from each other.

/// With fewer runs nothing is decided.
inline constexpr std::size_t kFewestBatches = 5;

/// How many samples a figure takes: so many that ten lie beyond a percentile (p50 20, p99 1,000),
/// 0 for other figures. With fewer nothing is kept; a miss takes ten samples beyond the bound.
double samples_needed(std::string_view figure);
/// The most that one of them takes.
double samples_needed(std::span<const Threshold> objectives);

/// Where a percentile lies, at a confidence of 95 % on either side; infinite on a side that the
/// runs do not show. A share of 0.99 is p99.
///
/// The samples beyond a value are counted as clusters, as long waits come together: a Poisson
/// distribution, overdispersed by as much as the runs differ, the more so the fewer they are. What
/// was cut off may have been longer than any value. Of further samples, `refused` are beyond every
/// value, and `failed` may be.
Interval percentile_interval(std::span<const Distribution* const> batches, double share,
                             double refused = 0, double failed = 0);

enum class Decision { open, kept, missed };
std::string_view to_string(Decision decision);

/// What the runs show of one objective, and where its figure lies. A percentile is kept or missed
/// if its interval lies wholly on one side of the bound. So is a mean or rate, by Student's t; of
/// a maximum or minimum, and for == and !=, each run must keep the objective.
struct Ruling {
  Decision decision = Decision::open;
  Interval figure;
  double samples = 0;
};
Ruling judge(const Threshold& objective, std::span<const Run* const> runs);

}  // namespace lockbench::results
