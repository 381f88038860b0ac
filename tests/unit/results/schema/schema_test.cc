#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "results/file/json.h"
#include "tests/folders.h"
#include "tests/support/result_schema.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using nlohmann::json;
using test::violation_of_schema;

const json& published() {
  static const json document =
      json::parse(std::ifstream(LOCKBENCH_SOURCE_DIR "/results/schema.json"));
  return document;
}

json document_of(const Result& result) { return json::parse(to_json(result)); }

/// Documents with everything that a file can hold.
std::vector<json> full_documents() {
  return {document_of(full_result()), document_of(sample_renewal()), document_of(sample_quorum())};
}

/// Checks the fields of each object in a part of the schema.
void expect_descriptions(const json& part) {
  static const std::set<std::string> may_be_negative{"mean", "low", "high", "node_commands",
                                                     "headroom"};
  const json fields = part.is_object() ? part.value("properties", json::object()) : json();
  for (const auto& [name, field] : fields.items()) {
    const std::string to = field.value("$ref", "");
    const json& words = to.empty() ? field : published().at(json::json_pointer(to.substr(1)));
    EXPECT_NE(words.value("description", ""), "") << name << " has no description";
    const json type = field.value("type", json());
    const bool number = type == "number" || type == json::array({"number", "null"});
    EXPECT_TRUE(!number || may_be_negative.contains(name) || field.contains("minimum") ||
                field.contains("exclusiveMinimum"))
        << name << " may be negative";
  }
  for (const json& inner : part) {
    if (inner.is_structured()) expect_descriptions(inner);
  }
}

TEST(Schema, DescribesEveryFieldAndBoundsItsNumber) { expect_descriptions(published()); }

TEST(Schema, AdmitsWhatIsWritten) {
  EXPECT_EQ(published().at("/definitions/Audit/properties/verdict/enum"_json_pointer),
            json(kVerdicts));
  for (const json& document : full_documents()) EXPECT_EQ(violation_of_schema(document), "");
  EXPECT_EQ(violation_of_schema(document_of(minimal_result())), "");
}

TEST(Schema, AndTheReaderWantTheSameFields) {
  std::set<std::string> seen;  // one of each struct is enough
  int missing = 0, wrong = 0;
  for (const json& document : full_documents()) {
    const json leaves = document.flatten();
    for (const auto& [leaf, value] : leaves.items()) {
      for (json::json_pointer place(leaf); !place.empty(); place.pop_back()) {
        const json& parent = document.at(place.parent_pointer());
        std::string kind = place.back() + " of";
        if (parent.is_array()) kind += " list " + place.parent_pointer().back();
        for (const auto& [name, sibling] : parent.items()) kind += " " + name;
        if (!seen.insert(kind).second) continue;
        json broken = document;
        broken.at(place) = document.at(place).is_object() ? json("text") : json{{"surprise", 1}};
        EXPECT_NE(violation_of_schema(broken), "") << "wrong type at " << place;
        EXPECT_FALSE(from_json(broken.dump())) << "wrong type at " << place;
        ++wrong;
        if (!parent.is_object()) continue;
        broken.at(place.parent_pointer()).erase(place.back());
        const auto read = from_json(broken.dump());
        EXPECT_EQ(read.has_value(), violation_of_schema(broken).empty()) << "without " << place;
        if (read) continue;
        EXPECT_THAT(read.error(), testing::HasSubstr(place.back()));
        ++missing;
      }
    }
  }
  EXPECT_GT(missing, 200);
  EXPECT_GT(wrong, 250);
}

TEST(Schema, RejectsWhatIsNotAllowedInParticular) {
  const std::vector<std::pair<std::string, json>> cases = {
      {"/schema", "lockbench.result/3"}, {"/started_at", "yesterday"}, {"/id", ""},
      {"/runs/0/fairness/jain", 1.5},    {"/runs/0/sections", -1},     {"/runs/0/repetition", 0},
  };
  for (const auto& [place, value] : cases) {
    json broken = full_documents().front();
    broken.at(json::json_pointer(place)) = value;
    EXPECT_NE(violation_of_schema(broken), "") << place << " = " << value;
  }
  json broken = full_documents().back();
  broken.at("/runs/0/load/nodes/count"_json_pointer) = 0;
  EXPECT_NE(violation_of_schema(broken), "");
}

}  // namespace
}  // namespace lockbench::results
