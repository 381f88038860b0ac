#pragma once

#include <string>

#include "results/file/model.h"

namespace lockbench::cli {

/// The command line that makes such a result again, quoted for a shell: every option that is not at
/// its default, except those that only say where output goes. A second line, a comment, names
/// options whose values are not valid here: this version does not take them, or a file that they
/// name is missing. Results hold no secrets, so there are none here.
std::string repeat_command(const results::Result& result);

}  // namespace lockbench::cli
