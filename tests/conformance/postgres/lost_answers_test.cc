#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>
#include <string>
#include <vector>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/postgres/postgres_test_store.h"

namespace lockbench::test {
namespace {

/// The answer to the grant is lost, and its connection with it, as the client is stopped.
AcquireResult acquire_and_lose_the_answer() {
  Bench bench(*find_strategy("postgres-lease"));
  const auto client = bench.client();
  warm_up(*client, bench.key());
  std::stop_source stop;
  client->faults().next_answer_is_late({}, [&] { stop.request_stop(); });
  client->faults().drop_answer(1);
  return client->acquire(bench.key(), seconds(20), kLongTtl, stop.get_token());
}

TEST(LostAnswers, AreCleanedUpOnANewConnectionAlsoAfterAStop) {
  // A busy machine may not give the new connection in the moment that is left.
  constexpr int kTries = 5;
  std::vector<std::string> left{"not tried"};
  for (int i = 0; i < kTries && !left.empty(); ++i) {
    EXPECT_EQ(acquire_and_lose_the_answer().outcome, AcquireOutcome::unknown);
    left = shared_postgres().keys();
  }
  EXPECT_THAT(left, testing::IsEmpty());
}

}  // namespace
}  // namespace lockbench::test
