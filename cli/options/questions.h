#pragma once

#include <cstdio>
#include <span>
#include <tl/expected.hpp>

#include "cli/options/option.h"

namespace lockbench::cli {

/// Asks for each option in turn on `out` and reads the answers from `in`, a line each; an empty one
/// leaves the option as it is. What an option refuses is asked again, three times at most; the
/// error then, and when `in` ends, is what the command ends with.
tl::expected<void, UsageError> ask(std::span<const Option> options, std::FILE* in, std::FILE* out,
                                   RunOptions& answers);

}  // namespace lockbench::cli
