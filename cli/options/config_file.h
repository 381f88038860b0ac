#pragma once

#include <map>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/option.h"

namespace lockbench::cli {

/// Values as text, by the name of their option.
using GivenValues = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Reads a TOML file whose keys are the names of `options`. Checks the type of each value, not the
/// value itself. The error names the file, the key and what is allowed.
tl::expected<GivenValues, UsageError> read_config_file(const std::string& path,
                                                       const std::vector<Option>& options);

}  // namespace lockbench::cli
