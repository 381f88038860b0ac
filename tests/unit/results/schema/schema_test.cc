#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  static const json document = [] {
    std::ifstream file(LOCKBENCH_SOURCE_DIR "/results/schema.json");
    return json::parse(file);
  }();
  return document;
}

json document_of(const Result& result) { return json::parse(to_json(result)); }

/// With everything that a file can hold; the two differ in their experiment.
std::vector<json> full_documents() {
  Result quorum = full_result();
  quorum.experiment = Experiment{std::vector<QuorumPoint>{sample_quorum_point()}};
  quorum.exit_code = 3;
  return {document_of(full_result()), document_of(quorum)};
}

/// The names of the members of all objects in a document.
void add_members(const json& part, std::set<std::string>& names) {
  for (const auto& [name, inner] : part.items()) {
    if (part.is_object()) names.insert(name);
    if (inner.is_structured()) add_members(inner, names);
  }
}

/// Looks at the fields of each object in a part of the schema.
void expect_descriptions(const json& part, const std::set<std::string>& written) {
  static const std::set<std::string> may_be_negative{"overhead", "low", "high", "node_cost_seconds",
                                                     "headroom"};
  const json fields = part.is_object() ? part.value("properties", json::object()) : json();
  for (const auto& [name, field] : fields.items()) {
    const std::string to = field.value("$ref", "");
    const json& words = to.empty() ? field : published().at(json::json_pointer(to.substr(1)));
    EXPECT_NE(words.value("description", ""), "") << name << " has no description";
    EXPECT_TRUE(written.contains(name)) << name << " is in no file";
    const json type = field.value("type", json());
    const bool number = type == "number" || type == json::array({"number", "null"});
    EXPECT_TRUE(!number || may_be_negative.contains(name) || field.contains("minimum") ||
                field.contains("exclusiveMinimum"))
        << name << " may be negative";
  }
  for (const json& inner : part) {
    if (inner.is_structured()) expect_descriptions(inner, written);
  }
}

TEST(Schema, DescribesEveryFieldBoundsItsNumberAndHasNoOther) {
  std::set<std::string> written{"compact"};  // by scripts/condense.py
  for (const json& document : full_documents()) add_members(document, written);
  expect_descriptions(published(), written);
}

TEST(Schema, AdmitsWhatIsWritten) {
  for (const json& document : full_documents()) EXPECT_EQ(violation_of_schema(document), "");
  EXPECT_EQ(violation_of_schema(document_of(minimal_result())), "");
  Result result = full_result();
  result.experiment = Experiment{std::vector<QuorumPoint>{{.strategy = "redis-wait"}}};
  EXPECT_EQ(violation_of_schema(document_of(result)), "") << "a point without figures";
}

/// A field that the schema lacks may have any type there, and so fails here.
TEST(Schema, AndTheReaderWantTheSameFields) {
  std::set<std::string> seen;  // of each struct one is enough
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
      {"/schema", "lockbench.result/3"},
      {"/started_at", "yesterday"},
      {"/id", ""},
      {"/runs/0/audit/verdict", "fine"},
      {"/runs/0/fairness/jain", 1.5},
      {"/runs/0/sections", 1.5},
      {"/runs/0/sections", -1},
      {"/runs/0/sections", nullptr},
      {"/runs/0/acquire/p99", -1},
      {"/runs/0/acquire/histogram/buckets/0/1", -1},
      {"/runs/0/repetition", 0},
      {"/runs/0/renewal", 5},
      {"/runs/0/renewal/lost", nullptr},
      {"/runs/0/renewal/margin", nullptr},
      {"/runs/0/quorum/votes/0", json::array({"node", 1, 2})},
      {"/runs/0/replication/refusals", nullptr},
      {"/workload/hold", json::object()},
  };
  for (const auto& [place, value] : cases) {
    json broken = full_documents().front();
    broken.at(json::json_pointer(place)) = value;
    EXPECT_NE(violation_of_schema(broken), "") << place << " = " << value;
  }
  json broken = full_documents().back();
  broken.at("/experiment/points/0/granted_share"_json_pointer) = 1.5;
  EXPECT_NE(violation_of_schema(broken), "");
}

}  // namespace
}  // namespace lockbench::results
