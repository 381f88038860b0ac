#include "cli/options/option.h"
#include "cli/options/option_types.h"

namespace lockbench::cli {

std::vector<Option> report_options() {
  return {path_option(
      "report", "also write the result there as a page for browsers (HTML, needs no network)",
      [](auto& o) -> auto& { return o.report.page; })};
}

}  // namespace lockbench::cli
