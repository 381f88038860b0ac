#pragma once

#include <span>
#include <tl/expected.hpp>

#include "results/file/model.h"

namespace lockbench::results {

enum class Comparison { less, less_equal, greater, greater_equal, equal, not_equal };

/// A condition on a figure of a run: "acquire.p99<5ms", "audit.lost_updates==0".
struct Threshold {
  std::string text;    ///< as it was given
  std::string figure;  ///< path of a number of a run, see figures.h
  Comparison comparison = Comparison::less;
  double bound = 0;  ///< durations in seconds

  bool wants_less() const {
    return comparison == Comparison::less || comparison == Comparison::less_equal;
  }
  bool wants_more() const {
    return comparison == Comparison::greater || comparison == Comparison::greater_equal;
  }
};

/// Reads FIGURE OPERATOR NUMBER[UNIT], with < <= > >= == != and ns, us, ms, s, m, h. Needs no run,
/// so a misspelt figure is an error before any load starts. The error is one line that names the
/// mistake and what is allowed.
tl::expected<Threshold, std::string> parse_threshold(std::string_view text);

struct ThresholdOutcome {
  std::optional<double> measured;
  std::string reason;       ///< why it was not kept, in one line; else empty
  bool is_unknown = false;  ///< neither kept nor missed
  std::string remedy{};     ///< what would decide it, in one line; empty: nothing is known to

  bool kept() const { return reason.empty(); }
};

/// A figure that depends on waits that were cut off lies between two bounds: as if these had ended
/// when they were cut off, and as if they had never ended, which counts refused acquisitions too.
/// The threshold is kept or missed if both bounds say so; otherwise, or without a figure, it is
/// unknown.
ThresholdOutcome evaluate(const Threshold& threshold, const Run& run);

/// A difference of B from A that counts as a regression: "acquire.p99>+10%",
/// "sections_per_second<-5%", "handoff.p50>+200us", "audit.lost_updates>+0".
struct Regression {
  std::string text;    ///< as it was given
  std::string figure;  ///< see figures.h
  bool more = true;    ///< B exceeds A by more than the bound, or else falls below it by more
  bool is_share = true;
  double bound = 0;  ///< at least 0; a share of A (0.1: 10 %), or in the figure's own unit
};

/// Reads FIGURE>+NUMBER[UNIT] or FIGURE<-NUMBER[UNIT], with %, ns, us, ms, s, m, h or no unit. The
/// error is one line that names the mistake and what is allowed.
tl::expected<Regression, std::string> parse_regression(std::string_view text);

// Runs of one load, each with its own seed, judged together by batch means (Law, Simulation
// Modeling and Analysis): each run is a batch, and their differences show how far they can be
// trusted. The samples of one run cannot show that, as waits in a queue depend on each other.

/// With fewer runs, nothing is decided.
inline constexpr std::size_t kFewestBatches = 5;

/// The samples that a figure needs, so that ten lie beyond a percentile (p50: 20, p99: 1,000); 0
/// for other figures. With fewer, nothing is kept; a miss needs ten samples beyond the bound.
double samples_needed(std::string_view figure);
/// The largest number that one of them needs.
double samples_needed(std::span<const Threshold> objectives);

enum class Decision { open, kept, missed };
std::string_view to_string(Decision decision);

/// The decision of the runs on one objective, and where its figure lies. An objective is kept or
/// missed if the interval of its figure lies wholly on one side of the bound: for means and rates,
/// the interval is by Student's t. For a maximum or minimum, and for == and !=, each run must keep
/// the objective.
struct Ruling {
  Decision decision = Decision::open;
  Interval figure;
  double samples = 0;
};
Ruling judge(const Threshold& objective, std::span<const Run* const> runs);

}  // namespace lockbench::results
