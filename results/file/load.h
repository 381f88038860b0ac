#pragma once

#include <string>
#include <tl/expected.hpp>

#include "results/file/model.h"

namespace lockbench::results {

/// Reads a result file, which may come from anywhere: see json.h for its bounds. The error is one
/// printable line that names the file and what is wrong with it.
tl::expected<Result, std::string> load(const std::string& path);

}  // namespace lockbench::results
