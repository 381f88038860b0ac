#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 is wrong about std::regex and std::string, inlined into the validator.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wrestrict"
#endif

#include "tests/integration/support/documents.h"

#include <fmt/format.h>

#include <memory>
#include <sstream>
#include <stdexcept>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "strategies/registry.h"
#include "tests/folders.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

const valijson::Schema& schema() {
  static const auto parsed_schema = [] {
    const Json document = Json::parse(read_file(LOCKBENCH_SOURCE_DIR "/results/schema.json"));
    auto parsed = std::make_unique<valijson::Schema>();
    valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(document),
                                            *parsed);
    return parsed;
  }();
  return *parsed_schema;
}

}  // namespace

std::string violation_of_schema(const Json& document) {
  valijson::ValidationResults errors;
  const valijson::adapters::NlohmannJsonAdapter target(document);
  if (valijson::Validator().validate(schema(), target, &errors)) return "";
  valijson::ValidationResults::Error error;
  std::string text = "rejected:";
  while (errors.popError(error)) {
    for (const std::string& part : error.context) text += part;
    text += " " + error.description + ";";
  }
  return text;
}

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
      // The last line may not be whole yet.
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

std::vector<std::string> all_strategy_names() {
  std::vector<std::string> names;
  for (const Descriptor* strategy : all_strategies()) names.emplace_back(strategy->name);
  return names;
}

}  // namespace lockbench::test
