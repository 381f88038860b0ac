#pragma once

#include <string_view>

#include "cli/option.h"

namespace lockbench {

/// Positional arguments of any number: `ChooseOptions::files`.
Option result_files_option(std::string_view help);

}  // namespace lockbench
