#include "results/file/json.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string error_of(std::string_view text) {
  const auto read = from_json(text);
  return read ? "no error" : read.error();
}

std::string error_of_document(const json& document) { return error_of(document.dump()); }

TEST(Json, WhatIsWrittenReadAndWrittenIsTheSame) {
  for (const Result& result :
       {full_result(), minimal_result(), sample_renewal(), sample_quorum()}) {
    EXPECT_EQ(to_json(read_back(result)), to_json(result));
  }
}

TEST(Json, CountsAreExactUpToTheLargest) {
  Result result = full_result();
  result.runs[0].sections = std::uint64_t{1} << 53;
  EXPECT_EQ(read_back(result).runs[0].sections, std::uint64_t{1} << 53);
  ++result.runs[0].sections;
  EXPECT_EQ(error_of(to_json(result)),
            "runs[0].sections is too large: at most 9007199254740992 is read");
}

TEST(Json, NumbersHaveBounds) {
  Result result = full_result();
  result.runs[0].hold.p50 = -1.1e18;
  EXPECT_THAT(error_of(to_json(result)), HasSubstr("runs[0].hold.p50 is too large"));
  result = full_result();
  result.workload["hold"] = 1e300;
  EXPECT_THAT(error_of(to_json(result)), HasSubstr("workload.hold is too large"));
}

TEST(Json, AHistogramGrowsAndHoldsNoMoreThanItCounts) {
  Result result = full_result();
  auto& buckets = result.runs[0].acquire.buckets;
  buckets[1].count += 1;
  EXPECT_EQ(error_of(to_json(result)),
            "runs[0].acquire has more samples in its buckets than it counts");
  buckets[1] = buckets[0];
  EXPECT_EQ(error_of(to_json(result)), "runs[0].acquire has buckets that do not grow");
  result = full_result();
  result.runs[0].acquire.censored.overflow = 1;
  EXPECT_THAT(error_of(to_json(result)), HasSubstr("more samples"));
}

TEST(Json, WhatWasNotMeasuredIsNull) {
  Result result = full_result();
  result.runs[0].handoff = {};
  result.runs[0].sections_per_second = std::numeric_limits<double>::quiet_NaN();
  result.runs[0].wait.backoff_seconds = std::numeric_limits<double>::infinity();
  result.workload["rate"] = std::numeric_limits<double>::infinity();
  const json run = json::parse(to_json(result)).at("runs").at(0);
  EXPECT_TRUE(run.at("handoff").at("p50").is_null());
  EXPECT_TRUE(run.at("sections_per_second").is_null());
  EXPECT_TRUE(run.at("wait").at("backoff_seconds").is_null());
  EXPECT_EQ(run.at("acquire").at("p50"), 8.3e-5);
  const Result again = read_back(result);
  EXPECT_TRUE(std::isnan(again.runs[0].sections_per_second));
  EXPECT_EQ(again.runs[0].handoff.p50, 0);
  EXPECT_EQ(to_json(again), to_json(result));
}

TEST(Json, ListsOfNumbersStandOnOneLine) {
  const std::string text = to_json(full_result());
  EXPECT_THAT(text, HasSubstr("\"per_client\": [15500,15501]"));
  EXPECT_THAT(text, HasSubstr("\"buckets\": [[8.3e-05,900],[0.00142,99],[12.3,1]]"));
  EXPECT_THAT(text, HasSubstr("\n    {\"t\":1.0,"));
}

TEST(Json, BytesThatAreNotUtf8AreReplaced) {
  Result result = full_result();
  result.runs[0].errors = {"-ERR \xff\xfe"};
  EXPECT_THAT(read_back(result).runs[0].errors.at(0), HasSubstr("-ERR "));
}

TEST(Json, TooMuchOfAKindIsRefused) {
  Result result = minimal_result();
  for (int i = 0; i < 17; ++i) {
    result.runs.push_back(simple_run("none"));
    result.runs.back().load = Load{.clients = static_cast<std::uint64_t>(i)};
  }
  EXPECT_EQ(error_of(to_json(result)), "runs have more than 16 loads");
}

TEST(Json, RunsThatTakeTooMuchMemoryAreRefused) {
  json document = json::parse(to_json(minimal_result()));
  document["compact"] = true;
  constexpr std::size_t kMost = kMaxResultBytes / sizeof(results::Run);
  document["runs"] = std::vector<json>(kMost + 1, json::object());
  EXPECT_THAT(error_of_document(document), HasSubstr("is more than a result holds"));
}

TEST(Json, RunsOfACompactDocumentLackWhatAnEmptyRunSays) {
  Result result = minimal_result();
  result.runs = {simple_run("a"), simple_run("b")};
  result.runs[1].leases_lost = 3;
  json document = json::parse(to_json(result));
  document["runs"] = {{{"strategy", "a"}, {"backend", "redis"}},
                      {{"strategy", "b"}, {"backend", "redis"}, {"leases_lost", 3}}};
  EXPECT_THAT(error_of_document(document), HasSubstr("runs[0].repetition is missing"));
  document["compact"] = true;
  const auto read = from_json(document.dump());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(to_json(*read), to_json(result));
}

TEST(Json, UnknownFieldsArePassedOver) {
  json document = json::parse(to_json(full_result()));
  document["later"] = 1;
  document["runs"][0]["renewal"]["later"] = 5;
  EXPECT_TRUE(from_json(document.dump()).has_value());
}

TEST(Json, WrongTypesAreNamedByTheirPath) {
  const std::vector<std::tuple<std::string, json, std::string>> cases = {
      {"/interrupted", 1, "interrupted is neither true nor false"},
      {"/runs", json::object(), "runs is not a list"},
      {"/runs/0/acquire", nullptr, "runs[0].acquire is not an object"},
      {"/runs/0/acquire/p99", "fast", "runs[0].acquire.p99 is not a number"},
      {"/runs/0/acquire/histogram/unit", "ms", "runs[0].acquire.histogram.unit is not \"s\""},
      {"/runs/0/acquire/histogram/buckets/2", json::array({1}),
       "runs[0].acquire.histogram.buckets[2] is not a list of 2 values"},
      {"/runs/0/acquire/histogram/buckets/2/1", -1,
       "runs[0].acquire.histogram.buckets[2][1] is not a whole number"},
      {"/runs/0/quorum/votes/0/3", -1,
       "runs[0].quorum.votes[0][3] is not a whole number of at least 0"},
      {"/runs/0/outcomes/failed", -1,
       "runs[0].outcomes.failed is not a whole number of at least 0"},
      {"/runs/0/repetition", 1ULL << 40, "runs[0].repetition is too large"},
      {"/runs/0/audit/verdict", "fine", "runs[0].audit.verdict is none of exclusive, violated"},
      {"/workload/hold", json::object(), "workload.hold is not the value of an option"},
      {"/workload/clients", 1ULL << 63, "workload.clients is not the value of an option"},
      {"/environment/servers/redis/version", 7,
       "environment.servers.redis.version is not a string"},
  };
  for (const auto& [place, value, error] : cases) {
    json document = json::parse(to_json(full_result()));
    document.at(json::json_pointer(place)) = value;
    EXPECT_THAT(error_of_document(document), testing::StartsWith(error)) << place;
  }
}

TEST(Json, HostileTextIsRefusedInOnePrintableLine) {
  EXPECT_THAT(error_of(""), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{\"schema\": \n\n]"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("[1e999]"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("not a lockbench result"));
  EXPECT_THAT(error_of("{}"), HasSubstr("lockbench.result/2"));
  EXPECT_THAT(error_of(std::string(100000, '[')), HasSubstr("nested too deep"));
  EXPECT_THAT(error_of(std::string(kMaxResultBytes + 1, ' ')), HasSubstr("too large"));
  json document = json::parse(to_json(full_result()));
  document["environment"]["servers"]["\x1b[2J\n" + std::string(5000, 'x')] = 1;
  const std::string error = error_of_document(document);
  EXPECT_LE(error.size(), 300U);
  EXPECT_THAT(error, Not(testing::ContainsRegex("[\x1b\n]")));
}

TEST(Json, AnotherSchemaIsNamed) {
  json document = json::parse(to_json(minimal_result()));
  document["schema"] = "lockbench.result/3";
  EXPECT_THAT(error_of_document(document), HasSubstr("lockbench.result/3"));
  EXPECT_THAT(error_of_document(document), HasSubstr("lockbench.result/2"));
  document["schema"] = 7;
  EXPECT_THAT(error_of_document(document), HasSubstr("schema 7"));
}

}  // namespace
}  // namespace lockbench::results
