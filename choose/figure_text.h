#pragma once

#include <string>

namespace lockbench::choose {

/// The value of a run's figure for people: "1.42 ms", "41.2k". `path` as in results/figures.h.
std::string shown_figure(const std::string& path, double value);

bool higher_is_better(const std::string& path);

}  // namespace lockbench::choose
