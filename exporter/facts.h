#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockbench::exporter {

/// What does not change while the process lives, as names and values of labels: no secrets, no
/// keys.
struct Facts {
  std::vector<std::pair<std::string, std::string>> run, build;
};

}  // namespace lockbench::exporter
