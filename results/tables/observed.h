#pragma once

#include <string>
#include <vector>

#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::results {

/// What a watch saw, which the result must have: a row for each family of locks, in the order of
/// the file.
Table observed_table(const Result& result);
/// A line for each finding, and for each server what cannot be seen of it.
std::vector<std::string> observed_lines(const Result& result);

}  // namespace lockbench::results
