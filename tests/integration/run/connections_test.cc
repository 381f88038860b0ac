#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

TEST(Connections, ManyClientsShareFew) {
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch, short_run({"redis-set-nx-lua", "redlock-parallel", "redis-setnx-expire-multi",
                          "--clients", "100", "--connections", "3", "--nodes", "3", "--keys", "20",
                          "--node-timeout", "10s", "--resource", "redis", "--out", "r.json"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(result.at("runs").size(), 3U);
  for (const Json& run : result.at("runs")) {
    EXPECT_EQ(run.at("load").at("connections"), 3) << run.at("strategy");
    EXPECT_EQ(run.at("generator").at("clients_on"), "fibers");
    EXPECT_EQ(run.at("errors"), Json::array()) << run.at("strategy");
    EXPECT_GT(run.at("outcomes").at("acquired"), 0) << run.at("strategy");
    EXPECT_TRUE(kept_exclusion(run)) << run.at("strategy");
  }
}

TEST(Connections, WhatCannotShareSaysWhy) {
  const Scratch scratch;
  for (const auto& [strategy, why] :
       {std::pair("postgres-row", "session is its own"), std::pair("redis-wait", "WAIT")}) {
    const Outcome outcome = lockbench(scratch, short_run({strategy, "--connections", "2"}));
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    expect_in(outcome.err, std::string(strategy) + " cannot run here: ");
    expect_in(outcome.err, why);
  }
}

}  // namespace
}  // namespace lockbench::test
