#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

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
