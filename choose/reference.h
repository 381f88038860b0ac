#pragma once

#include <string_view>
#include <vector>

#include "choose/evidence.h"

namespace lockbench::choose {

/// The results in results/reference, as they were when lockbench was built. A file among them that
/// cannot be read is a mistake of the build's, and throws std::runtime_error.
std::vector<Source> reference();

/// A file of results/reference. reference_files() is generated from them when lockbench is built.
struct ReferenceFile {
  std::string_view name, text;
};
std::vector<ReferenceFile> reference_files();

}  // namespace lockbench::choose
