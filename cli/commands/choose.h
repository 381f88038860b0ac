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
  bool measure = false;
  Duration measure_time = std::chrono::minutes(2);
  ServerUrls servers;  ///< for --measure, as are the next two
  bool tls = false;
  std::string out;
  std::string config;

  void declare(OptionList& options);
  /// Those of which it needs one at least.
  void declare_requirements(OptionList& options);
};

}  // namespace lockbench::cli
