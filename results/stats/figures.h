#pragma once

#include <span>

#include "results/file/model.h"
#include "results/tables/text.h"

namespace lockbench::results {

/// A number of a run under its path in the result file: "acquire.p99". Durations are in seconds.
struct Figure {
  std::string path;
  std::optional<double> value;  ///< nothing where the file says null
  bool at_least = false;        ///< shown as a lower bound: see Distribution::at_least
  /// The value, or an upper bound if samples were censored: as if these had never ended. Infinite
  /// if there is none.
  double most = 0;
};

/// Every number of a run, except those in lists, in the file's order. The paths are the same for
/// every run.
std::vector<Figure> figures(const Run& run);

/// The figure of that path. An unknown path is a programming error and throws
/// std::invalid_argument.
Figure find_figure(const Run& run, std::string_view path);
std::optional<double> figure(const Run& run, std::string_view path);

/// The distribution of a run that a figure such as "acquire.p99" belongs to.
std::optional<Distribution Run::*> distribution_of(std::string_view path);
/// 0.99 for such a percentile; nothing for other figures.
std::optional<double> percentile_share(std::string_view path);

/// How many samples are at most how long, in seconds.
struct PercentileStep {
  double percent = 0;  ///< below 100
  double value = 0;
  std::uint64_t samples = 0;
};
/// HdrHistogram's steps, five for each halving of the distance to 100 %, up to the step that only
/// the largest samples reach. Empty without buckets; at most about 260.
std::vector<PercentileStep> percentile_steps(const Distribution& distribution);

enum class Good { higher, lower, unknown };

/// A figure that results are compared by.
struct ComparedFigure {
  std::string path;
  Unit unit = Unit::number;
  Good good = Good::unknown;
};

/// The figure of that path; its direction may be unknown.
ComparedFigure compared_figure(const std::string& path);

/// The usual figures, and those of these paths.
std::vector<ComparedFigure> compared_figures(std::span<const std::string> more);

}  // namespace lockbench::results
