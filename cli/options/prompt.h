#pragma once

#include <cstdio>
#include <span>

#include "cli/options/option.h"

namespace lockbench::cli {

/// Asks on `out` for the value of each option and reads the answers from `in`, one line each; an
/// empty answer leaves the option at its default. A value that the option refuses is asked for
/// again, three times at most; then, or at the end of `in`, that is a UsageError.
void prompt(std::span<Option> options, std::FILE* in, std::FILE* out);

}  // namespace lockbench::cli
