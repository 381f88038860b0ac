#pragma once

#include <string>
#include <vector>

#include "choose/requirements.h"
#include "cli/options/load_options.h"

namespace lockbench::cli {

struct ChooseOptions {
  static constexpr Commands kCommand = kChoose;
  choose::Requirements requirements;
  std::vector<std::string> files;  ///< none: the reference results
  Format format = Format::table;
  std::string config;

  void declare(OptionList& options);
  /// Those that the command asks for on a terminal.
  void declare_requirements(OptionList& options);
};

}  // namespace lockbench::cli
