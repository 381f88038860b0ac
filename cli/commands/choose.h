#pragma once

#include <string>
#include <vector>

#include "choose/requirements.h"
#include "cli/options/load_options.h"

namespace lockbench::cli {

struct ChooseOptions {
  static constexpr std::string_view kCommand = "choose";
  choose::Requirements requirements;
  std::vector<std::string> files;  ///< none: the reference results
  bool measure = false;
  Duration measure_time = std::chrono::minutes(2);
  ServerUrls servers;  ///< for --measure, as are the next two
  bool tls = false;
  OutputOptions output;  ///< `out` is that of --measure

  void declare(OptionList& options);
  /// Those of which it needs one at least.
  void declare_requirements(OptionList& options);
};

}  // namespace lockbench::cli
