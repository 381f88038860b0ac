#include <gtest/gtest.h>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

/// What was found at a rate is by all its steps, and in the bounds of what can be. Returns how many
/// steps were disturbed.
int expect_decided_by_steps(const Json& capacity) {
  int invalid = 0;
  for (const Json& at : capacity.at("rates")) {
    const std::string decision = at.at("decision");
    invalid += at.at("invalid_steps").get<int>();
    EXPECT_LT(at.at("rate"), 500) << "2 ms each allow no more, however fast the machine is";
    if (decision == "open") continue;
    EXPECT_GE(at.at("steps"), 5) << at;
    EXPECT_GE(at.at("samples"), decision == "kept" ? 100 : 10) << at;
  }
  return invalid;
}

TEST(Capacity, OfAQueueThatIsHeldIsTheLocks) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"capacity", "redis-queue", "--redis", shared_redis().url(), "--warmup",
                          "100ms", "--hold", "2ms", "--slo", "acquire.p90<100ms", "--duration",
                          "500ms", "--time", "60s", "--out", "r.json"});
  const Json capacity = read_result(scratch / "r.json").at("capacity").at(0);
  const int invalid = expect_decided_by_steps(capacity);
  EXPECT_DOUBLE_EQ(capacity.at("ceiling"), 500);
  if (invalid > 0) return;  // the machine had other work
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GT(capacity.at("lowest"), 0);
  EXPECT_GT(capacity.at("highest"), capacity.at("lowest"));
  EXPECT_EQ(capacity.at("limit"), "lock") << capacity.at("limit_reason");
}

}  // namespace
}  // namespace lockbench::test
