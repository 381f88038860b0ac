#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/file/model.h"

namespace lockbench::results {

/// A number of a run under its path in the result file: "acquire.p99". Durations are in seconds.
struct Figure {
  std::string path;
  std::optional<double> value;  ///< nothing where the file says null
  bool at_least = false;        ///< a lower bound: see Distribution::censored
};

/// Every number of a run but those in lists, in the file's order. The paths are the same for every
/// run.
std::vector<Figure> figures(const Run& run);

/// The figure of that path. An unknown path is a programming error and throws
/// std::invalid_argument.
Figure find_figure(const Run& run, std::string_view path);
std::optional<double> figure(const Run& run, std::string_view path);

/// The distribution of a run that a figure such as "acquire.p99" belongs to.
std::optional<Distribution Run::*> distribution_of(std::string_view path);
/// 0.99 for such a percentile; nothing for other figures.
std::optional<double> percentile_share(std::string_view path);

/// Buckets of the complete and the censored samples together, growing: what the figures are over.
std::vector<Distribution::Bucket> all_buckets(const Distribution& distribution);

}  // namespace lockbench::results
