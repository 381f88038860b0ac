#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockbench::test {

/// Every `#include "room/..."` under `root` that the table of rooms in arrows.cc does not allow,
/// one line each: "results/stats/figures.cc includes strategies/env.h: results must not include
/// strategies". Sorted.
std::vector<std::string> forbidden_includes(const std::filesystem::path& root);

}  // namespace lockbench::test
