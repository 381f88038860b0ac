#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/boards.h"

namespace lockbench::test {

using Complaints = std::vector<std::string>;

/// One of dashboard-linter's rules, by its name there; or of our own.
struct LintRule {
  std::string name;
  std::function<Complaints(const Board&)> check;
};

const std::vector<LintRule>& lint_rules();
Complaints complaints(const std::string& rule, const Board& board);

}  // namespace lockbench::test
