#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

class LiveRunLossTest : public LiveRunTest {
 protected:
  results::Distribution losses(Duration valid_until, std::optional<Duration> confirmed);
};

TEST_F(LiveRunLossTest, ALossThatTheClientKnewOfIsCountedOnce) {
  end_after(30);
  const results::Run run =
      run_one({.acquire =
                   [](const Context& context, const AcquireRequest& request) {
                     AcquireResult granted = grant(request);
                     granted.lease->state->extend(context.env.now() - 2s, context.env.now() - 3s);
                     granted.lease->state->mark_lost(context.env.now());
                     return granted;
                   },
               .release =
                   [](const Lease&) {
                     return ReleaseResult{ReleaseOutcome::not_owner, {}};
                   }});
  EXPECT_EQ(run.leases_lost, 30U);
  EXPECT_EQ(run.loss_to_knowledge.count, 30U);
  EXPECT_GE(run.loss_to_knowledge.min, 2.0);
}

/// Runs sections whose leases are lost at once, and end and were confirmed so long before.
results::Distribution LiveRunLossTest::losses(Duration valid_until,
                                              std::optional<Duration> confirmed) {
  end_after(10);
  const results::Run run =
      run_one({.acquire =
                   [=](const Context& context, const AcquireRequest& request) {
                     AcquireResult granted = grant(request);
                     const TimePoint now = context.env.now();
                     granted.lease->state->extend(now + valid_until,
                                                  confirmed ? now + *confirmed : TimePoint::min());
                     return granted;
                   },
               .release =
                   [](const Lease&) {
                     return ReleaseResult{ReleaseOutcome::not_owner, {}};
                   }});
  EXPECT_EQ(run.leases_lost, 10U);
  return run.loss_to_knowledge;
}

TEST_F(LiveRunLossTest, ALossCountsFromTheEndOfValidity) {
  const results::Distribution known_after = losses(-2s, -60s);
  EXPECT_EQ(known_after.count, 10U);
  EXPECT_GE(known_after.min, 2.0);
  EXPECT_LT(known_after.max, 60.0);
}

TEST_F(LiveRunLossTest, AnEarlierLossCountsFromTheLatestConfirmation) {
  const results::Distribution known_after = losses(1h, -60s);
  EXPECT_EQ(known_after.count, 10U);
  EXPECT_GE(known_after.min, 60.0);
}

TEST_F(LiveRunLossTest, AnEarlierLossWithoutConfirmationHasNoKnownLength) {
  EXPECT_EQ(losses(1h, std::nullopt).count, 0U);
}

}  // namespace
}  // namespace lockbench::loadgen
