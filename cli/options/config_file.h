#pragma once

#include <map>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/option.h"

namespace lockbench::cli {

/// Values as text, per option that was given; options that take one value have one.
using GivenValues = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Reads a TOML file whose keys are the names of `options`. The error names file, key and what is
/// allowed; values are not looked into.
tl::expected<GivenValues, UsageError> read_config_file(const std::string& path,
                                                       const std::vector<Option>& options);

}  // namespace lockbench::cli
