#pragma once

#include <string>

#include "cli/options/option.h"

namespace lockbench::cli {

/// Positional arguments of any number; `access` leads to the list of them, as in option_types.h.
template <class Access>
Option result_files_option(std::string help, Access access) {
  Option option{.name = "files", .value_name = "FILE", .help = std::move(help)};
  option.repeatable = true;
  option.in_file = false;
  option.positional = true;
  option.set = [=](RunOptions& options,
                   const std::string& text) -> tl::expected<void, std::string> {
    access(options).push_back(text);
    return {};
  };
  option.get = [=](const RunOptions& options) { return access(options); };
  return option;
}

}  // namespace lockbench::cli
