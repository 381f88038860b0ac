#pragma once

#include <string_view>
#include <vector>

namespace lockbench::choose {

/// A file of results/reference. Its definition is made from them when lockbench is built.
struct ReferenceFile {
  std::string_view name, text;
};

std::vector<ReferenceFile> reference_files();

}  // namespace lockbench::choose
