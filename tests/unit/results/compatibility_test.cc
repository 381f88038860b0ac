#include <gmock/gmock.h>

#include "results/file/loads.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Incompatibilities, AreNamedWithBothValues) {
  const Result a = full_result();
  EXPECT_THAT(incompatibilities(a, a), IsEmpty());
  Result b = a;
  b.workload["clients"] = std::int64_t{16};
  b.workload["hold"] = std::string("exp(2ms)");
  b.environment.cpu = "Another CPU";
  b.environment.servers["redis"].version = "6.0.16";
  b.lockbench.build_type = "Debug";
  EXPECT_THAT(
      incompatibilities(a, b),
      ElementsAre("clients 8 and 16", "hold 0.002 and exp(2ms)", "cpu Example CPU and Another CPU",
                  "redis 7.0.15 and 6.0.16", "build Release and Debug"));
}

TEST(Incompatibilities, TlsIsNamedAlsoBesideAFileThatDoesNotKnowIt) {
  const Result older = full_result();
  Result with = older, without = older;
  with.workload["tls"] = true;
  without.workload["tls"] = false;
  EXPECT_THAT(incompatibilities(older, without), IsEmpty());
  EXPECT_THAT(incompatibilities(older, with),
              ElementsAre("connections direct and direct with TLS"));
  EXPECT_THAT(incompatibilities(with, without),
              ElementsAre("connections direct with TLS and direct"));
}

TEST(Incompatibilities, WhatDoesNotTouchTheLoadMayDiffer) {
  const Result a = full_result();
  Result b = a;
  b.workload["repeat"] = std::int64_t{9};
  b.workload["seed"] = std::int64_t{9};
  b.workload["newer"] = std::int64_t{1};
  b.workload["clients"] = 8.0;
  b.workload["hold"] = std::get<double>(a.workload.at("hold")) * (1 + 1e-15);  // in another unit
  b.environment.servers["redis"].endpoints = {"127.0.0.1:7777"};
  b.environment.memory_bytes += 1 << 20;
  b.lockbench.commit = "another";
  EXPECT_THAT(incompatibilities(a, b), IsEmpty());
}

TEST(Incompatibilities, HostileTextsStayShortAndPrintable) {
  Result a = full_result();
  Result b = a;
  b.workload["wait"] = "\x1b[2J\n" + std::string(5000, 'x');
  b.environment.kernel = std::string(5000, '\n');
  for (const std::string& line : incompatibilities(a, b)) {
    EXPECT_LE(line.size(), 120U);
    EXPECT_THAT(line, testing::Not(testing::ContainsRegex("[\x1b\n]")));
  }
}

}  // namespace
}  // namespace lockbench::results
