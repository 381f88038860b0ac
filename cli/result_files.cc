#include "cli/result_files.h"

namespace lockbench {

Option result_files_option(std::string_view help) {
  Option option{.name = "files", .value_name = "FILE", .help = std::string(help)};
  option.repeatable = true;
  option.in_file = false;
  option.positional = true;
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    options.choose.files.push_back(text);
    return {};
  };
  option.get = [](const RunOptions& options) { return options.choose.files; };
  return option;
}

}  // namespace lockbench
