#include <gtest/gtest.h>

#include <stop_token>

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
  return client->acquire(bench.key(), patience(), kLongTtl, stop.get_token());
}

TEST(LostAnswers, AreCleanedUpOnANewConnectionAlsoAfterAStop) {
  EXPECT_EQ(acquire_and_lose_the_answer().outcome, AcquireOutcome::unknown);
  EXPECT_EQ(shared_postgres().keys(), std::vector<std::string>());
}

}  // namespace
}  // namespace lockbench::test
