#pragma once

#include <string>
#include <vector>

#include "results/file/model.h"

namespace lockbench::results {

/// A table of texts: what experiments show. The first column stands to the left, the others to the
/// right.
struct TextSheet {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;
};

/// One row for each point; of a dose one for each curve.
TextSheet sheet_of(const Experiment& experiment);
TextSheet sheet_of(const std::vector<RenewalPoint>& points);
TextSheet sheet_of(const std::vector<QuorumPoint>& points);
TextSheet sheet_of(const std::vector<DosePoint>& points);

/// One row for each point in base units, which is what CSV gets.
TextSheet list_of(const Experiment& experiment);
TextSheet list_of(const std::vector<RenewalPoint>& points);
TextSheet list_of(const std::vector<QuorumPoint>& points);
TextSheet list_of(const std::vector<DosePoint>& points);

/// What the figures say, in a line each.
std::vector<std::string> readings(const Experiment& experiment);
std::vector<std::string> readings(const std::vector<RenewalPoint>& points);
std::vector<std::string> readings(const std::vector<QuorumPoint>& points);
std::vector<std::string> readings(const std::vector<DosePoint>& points);

/// Those of them that tell where a lock failed, which come first.
std::vector<std::string> breaches(const Experiment& experiment);
std::vector<std::string> breaches(const std::vector<QuorumPoint>& points);

std::string to_table(const TextSheet& sheet);
std::string to_markdown(const TextSheet& sheet);
std::string to_csv(const TextSheet& sheet);

}  // namespace lockbench::results
