#pragma once

#include <span>
#include <string>

namespace lockbench::cli {

/// All of lockbench: `args` without the program's name. Prints, and returns the exit code.
int dispatch(std::span<const std::string> args);

}  // namespace lockbench::cli
