#pragma once

#include <string>
#include <tl/expected.hpp>

#include "results/file/model.h"

namespace lockbench::results {

/// Reads a result file, which may come from anywhere: see json.h for its bounds. The error is one
/// printable line that names the file and what is wrong with it.
tl::expected<Result, std::string> load(const std::string& path);

/// The same, for what is to be written as a result file again. Refused is a file of version 1 that
/// has runs: what is written says that it is of version 2, in which their figures mean something
/// else.
tl::expected<Result, std::string> load_to_rewrite(const std::string& path);

}  // namespace lockbench::results
