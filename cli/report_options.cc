#include "cli/option.h"
#include "cli/option_types.h"

namespace lockbench {

std::vector<Option> report_options() {
  return {path_option(
      "report", "also write the result there as a page for browsers (HTML, needs no network)",
      [](auto& o) -> auto& { return o.report.page; })};
}

}  // namespace lockbench
