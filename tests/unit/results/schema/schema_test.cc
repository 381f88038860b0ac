#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 is wrong about std::regex and std::string, inlined into the validator.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wrestrict"
#endif

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "results/file/json.h"
#include "tests/folders.h"
#include "tests/unit/results/mutations.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using nlohmann::json;

/// The schema's own text.
json published() {
  std::ifstream file(LOCKBENCH_SOURCE_DIR "/results/schema.json");
  return json::parse(file);
}

/// Closes every object whose fields are described: what is open for later versions must hold no
/// more than is said in this one.
json closed(json schema) {
  if (schema.is_object() && schema.contains("properties") &&
      !schema.contains("additionalProperties")) {
    schema["additionalProperties"] = false;
  }
  for (json& part : schema) {
    if (part.is_structured()) {
      part = closed(part);
    }
  }
  return schema;
}

class Checker {
 public:
  explicit Checker(const json& schema) {
    valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(schema),
                                            schema_);
  }

  /// Empty if the document keeps the schema.
  std::string violation(const json& document) const {
    valijson::ValidationResults errors;
    const valijson::adapters::NlohmannJsonAdapter target(document);
    if (valijson::Validator().validate(schema_, target, &errors)) {
      return "";
    }
    valijson::ValidationResults::Error error;
    std::string text = "rejected:";
    while (errors.popError(error)) {
      for (const std::string& part : error.context) {
        text += part;
      }
      text += " " + error.description + ";";
    }
    return text;
  }

 private:
  valijson::Schema schema_;
};

/// As others read the file.
std::string violation(const json& document) {
  static const Checker checker(published());
  return checker.violation(document);
}

/// As we write it.
std::string strict_violation(const json& document) {
  static const Checker checker(closed(published()));
  return checker.violation(document);
}

json document_of(const Result& result) { return json::parse(to_json(result)); }

/// The full result with everything that the file announces beyond it.
json announced() {
  json document = document_of(full_result());
  Result quorum = full_result();
  quorum.experiment = Experiment{std::vector<QuorumPoint>{sample_quorum_point()}};
  document["experiment"]["points"].push_back(
      document_of(quorum).at("experiment").at("points").at(0));
  return document;
}

TEST(Schema, AdmitsWhatIsWritten) {
  EXPECT_EQ(strict_violation(document_of(full_result())), "");
  EXPECT_EQ(strict_violation(document_of(minimal_result())), "");
}

TEST(Schema, AdmitsAPointWithoutFigures) {
  Result result = full_result();
  result.experiment = Experiment{std::vector<QuorumPoint>{{.strategy = "redis-wait"}}};
  EXPECT_EQ(strict_violation(document_of(result)), "");
}

TEST(Schema, AdmitsWhatTheFileAnnounces) { EXPECT_EQ(strict_violation(announced()), ""); }

TEST(Schema, RejectsEveryMissingField) {
  const json document = announced();
  int removed = 0;
  for (const auto& place : distinct_places(document, is_map)) {
    const std::string at = place.to_string();
    if (place.empty() || may_be_left_out(at) || !document.at(place.parent_pointer()).is_object()) {
      continue;
    }
    json broken = document;
    broken.at(place.parent_pointer()).erase(place.back());
    EXPECT_NE(violation(broken), "") << "results/schema.json does not require " << place;
    ++removed;
  }
  EXPECT_GT(removed, 250);
}

TEST(Schema, IsOpenForAdditionsThatOurOwnFilesDoNotMake) {
  const json document = announced();
  int added = 0;
  for (const auto& place : distinct_places(document, is_map)) {
    const std::string at = place.to_string();
    if (!document.at(place).is_object() || is_map(at)) {
      continue;
    }
    json broken = document;
    broken.at(place)["surprise"] = 1;
    EXPECT_EQ(violation(broken), "") << "added to " << place;
    EXPECT_NE(strict_violation(broken), "") << "added to " << place;
    ++added;
  }
  EXPECT_GT(added, 40);
}

TEST(Schema, RejectsWrongTypesAndNegativeNumbersEverywhere) {
  const json document = announced();
  int changed = 0;
  for (const auto& place : distinct_places(document, is_map)) {
    const std::string at = place.to_string();
    if (is_map(at)) {
      continue;
    }
    json broken = document;
    // No field may be an object of anything, and text stands where no number does.
    broken.at(place) = document.at(place).is_object() ? json("text") : json{{"surprise", 1}};
    EXPECT_NE(violation(broken), "") << "wrong type at " << place;
    const bool signed_figure =
        at == "/experiment/points/0/overhead" ||
        at.starts_with("/experiment/points/0/overhead_interval/") ||
        at.starts_with("/experiment/points/1/node_cost_") || at == "/capacity/0/headroom" ||
        at.ends_with("/clock_offset_seconds") || at.ends_with("/clock_drift");
    if (document.at(place).is_number() && !signed_figure) {
      broken.at(place) = -1;
      EXPECT_NE(violation(broken), "") << "negative at " << place;
    }
    ++changed;
  }
  EXPECT_GT(changed, 250);
}

TEST(Schema, RejectsWhatIsNotAllowedInParticular) {
  const std::vector<std::pair<std::string, json>> cases = {
      {"/schema", "lockbench.result/3"},
      {"/started_at", "yesterday"},
      {"/id", ""},
      {"/runs/0/audit/verdict", "fine"},
      {"/runs/0/fairness/jain", 1.5},
      {"/runs/0/sections", 1.5},
      {"/runs/0/sections", nullptr},
      {"/runs/0/repetition", 0},
      {"/runs/0/renewal", 5},
      {"/runs/0/renewal/lost", nullptr},
      {"/runs/0/renewal/margin", nullptr},
      {"/runs/0/quorum/votes/0", json::array({"node", 1, 2})},
      {"/runs/0/replication/refusals", nullptr},
      {"/experiment/points/1/granted_share", 1.5},
      {"/workload/hold", json::object()},
      {"/experiment/points/0/mode", "by hand"},
  };
  for (const auto& [place, value] : cases) {
    json broken = announced();
    broken.at(json::json_pointer(place)) = value;
    EXPECT_NE(violation(broken), "") << place << " = " << value;
  }
}

}  // namespace
}  // namespace lockbench::results
