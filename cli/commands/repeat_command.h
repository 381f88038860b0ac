#pragma once

#include <string>

#include "results/file/model.h"

namespace lockbench::cli {

/// The command line by which such a result can be had again, quoted for a shell: all settings that
/// are not this build's defaults, but for those that only say where output goes. A second line, a
/// comment, names what the file holds and this build's options cannot say. Secrets are in no result
/// and so not here.
std::string repeat_command(const results::Result& result);

}  // namespace lockbench::cli
