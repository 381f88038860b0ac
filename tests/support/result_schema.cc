#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 is wrong about std::regex and std::string, inlined into the validator.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wrestrict"
#endif

#include "tests/support/result_schema.h"

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "tests/folders.h"

namespace lockbench::test {
namespace {

const valijson::Schema& schema() {
  static const auto parsed_schema = [] {
    std::ifstream file(LOCKBENCH_SOURCE_DIR "/results/schema.json");
    const auto document = nlohmann::json::parse(file);
    auto parsed = std::make_unique<valijson::Schema>();
    valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(document),
                                            *parsed);
    return parsed;
  }();
  return *parsed_schema;
}

}  // namespace

std::string violation_of_schema(const nlohmann::json& document) {
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

}  // namespace lockbench::test
