#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"

namespace lockbench::test {
namespace {

using std::chrono::hours;

struct Numbered {
  const char* strategy;
  const char* suffix;  ///< of the key that holds its numbers
};

class FencingNumbers : public testing::TestWithParam<Numbered> {
 protected:
  milliseconds left() const { return probe_.time_to_live(numbers_).value_or(milliseconds(0)); }

  Bench bench_{*find_strategy(GetParam().strategy), unrenewed()};
  const std::string numbers_ = bench_.key() + GetParam().suffix;
  mutable RedisProbe probe_{shared_redis().port()};
};

TEST_P(FencingNumbers, OutliveEveryLease) {
  const auto client = bench_.client();
  const AcquireResult held = client->try_once(bench_.key(), seconds(10));
  ASSERT_TRUE(held.lease) << held.reason;
  EXPECT_GT(left(), hours(23));

  // A lease that is renewed for long.
  probe_.ask({"PEXPIRE", numbers_, "1000"});
  ASSERT_EQ(client->lock().renew(*held.lease, seconds(10)).outcome, RenewOutcome::renewed);
  EXPECT_GT(left(), hours(23));
  client->release(*held.lease);

  const AcquireResult longer = client->try_once(bench_.key(), hours(20));
  ASSERT_TRUE(longer.lease) << longer.reason;
  EXPECT_GT(left(), hours(39));
  EXPECT_GT(longer.lease->fencing, held.lease->fencing);
  client->release(*longer.lease);
}

INSTANTIATE_TEST_SUITE_P(Of, FencingNumbers,
                         testing::Values(Numbered{"redis-fenced", ":fencing"},
                                         Numbered{"redis-queue", ":numbers"}),
                         [](const auto& tested) {
                           return tested.param.suffix == std::string(":numbers") ? "Queue"
                                                                                 : "Fenced";
                         });

}  // namespace
}  // namespace lockbench::test
