#include "tests/integration/support/documents.h"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

#include "strategies/registry.h"
#include "tests/integration/support/program.h"
#include "tests/support/result_schema.h"

namespace lockbench::test {

Json read_result(const std::filesystem::path& path) {
  Json document = Json::parse(read_file(path));
  if (const std::string wrong = violation_of_schema(document); !wrong.empty()) {
    throw std::runtime_error(fmt::format("{}: {}", path.string(), wrong));
  }
  return document;
}

const Json& run_of(const Json& result, std::string_view strategy) {
  for (const Json& run : result.at("runs")) {
    if (run.at("strategy") == strategy) return run;
  }
  throw std::runtime_error(fmt::format("no run of {}", strategy));
}

bool tells(Program& program, const Json& fields) {
  return program.until([&] {
    std::istringstream lines(program.printed());
    for (std::string line; std::getline(lines, line);) {
      const Json event = Json::parse(line, nullptr, false);
      // The last line may be incomplete.
      if (event.is_discarded()) continue;
      Json merged = event;
      merged.update(fields);
      if (merged == event) return true;
    }
    return false;
  });
}

bool kept_exclusion(const Json& run) {
  const Json& audit = run.at("audit");
  const bool audited = audit.at("verdict") == "exclusive" || audit.at("verdict") == "untested";
  return audited && audit.at("lost_updates") == 0 && audit.at("overlaps") == 0;
}

}  // namespace lockbench::test
