#include "choose/figure_text.h"

#include <fmt/format.h>

#include "results/stats/compared_figures.h"
#include "results/stats/figures.h"
#include "results/tables/units.h"

namespace lockbench::choose {

using results::Good;

std::string shown_figure(const std::string& path, double value) {
  return results::compared_figure(path).kind == results::FigureKind::seconds
             ? results::human_seconds(value)
             : results::human_number(value);
}

bool can_rank(const std::string& path) {
  return results::compared_figure(path).good != Good::unknown;
}

bool higher_is_better(const std::string& path) {
  return results::compared_figure(path).good == Good::higher;
}

std::string ranking_figures() {
  std::string list;
  std::string group;
  for (const results::Figure& figure : results::figures(results::Run{})) {
    if (!can_rank(figure.path)) continue;
    // A distribution's figures share a word.
    const auto last = figure.path.rfind('.');
    const bool begins = figure.path.ends_with(".mean");
    if (!begins && !group.empty() && figure.path.starts_with(group)) continue;
    group = begins ? figure.path.substr(0, last + 1) : "";
    list += fmt::format("{}{}", list.empty() ? "" : ", ", begins ? group + "*" : figure.path);
  }
  return list;
}

}  // namespace lockbench::choose
