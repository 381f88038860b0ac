#pragma once

#include <string>

namespace lockbench::choose {

/// The value of a run's figure for people: "1.42 ms", "41.2k". `path` as in results/figures.h.
std::string shown_figure(const std::string& path, double value);

/// Whether it is known which way the figure is better.
bool can_rank(const std::string& path);
/// Of all runs' figures, in the file's order: "sections, acquire.*, ...".
std::string ranking_figures();
/// False too where that is not known.
bool higher_is_better(const std::string& path);

}  // namespace lockbench::choose
