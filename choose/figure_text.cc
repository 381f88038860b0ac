#include "choose/figure_text.h"

#include <algorithm>
#include <vector>

#include "results/compared_figures.h"
#include "results/units.h"

namespace lockbench::choose {
namespace {

results::ComparedFigure described(const std::string& path) {
  const std::vector<std::string> paths{path};
  const auto figures = results::compared_figures(paths);
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const auto& figure) { return figure.path == path; });
  return found == figures.end() ? results::ComparedFigure{.path = path} : *found;
}

}  // namespace

std::string shown_figure(const std::string& path, double value) {
  return described(path).kind == results::FigureKind::seconds ? results::human_seconds(value)
                                                              : results::human_number(value);
}

bool higher_is_better(const std::string& path) {
  return described(path).good == results::Good::higher;
}

}  // namespace lockbench::choose
