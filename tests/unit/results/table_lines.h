#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "results/tables/table.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

inline std::vector<std::string> texts_of(const std::vector<Cell>& cells) {
  std::vector<std::string> texts;
  texts.reserve(cells.size());
  for (const Cell& cell : cells) texts.push_back(cell.text);
  return texts;
}

inline Run run_at(double sections_per_second, int repetition) {
  auto run = simple_run("redlock");
  run.repetition = repetition;
  run.sections_per_second = sections_per_second;
  run.acquire = sample_distribution();
  run.audit.increments = 100;
  run.fairness.per_client = {50, 50};
  return run;
}

}  // namespace lockbench::results
