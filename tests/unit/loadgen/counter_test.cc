#include "loadgen/record/counter.h"

#include <gtest/gtest.h>

namespace lockbench::loadgen {
namespace {

class CounterTest : public testing::Test {
 protected:
  void increment(CounterSession& session, int key = 0) {
    const auto reading = session.read(key, {});
    ASSERT_TRUE(reading);
    ASSERT_EQ(session.write(key, *reading, std::nullopt), WriteResult::accepted);
  }

  std::unique_ptr<Env> env_ = make_system_env(1);
  std::unique_ptr<Counter> counter_ = make_memory_counter(2);
  std::unique_ptr<CounterSession> first_ = counter_->open(*env_);
  std::unique_ptr<CounterSession> second_ = counter_->open(*env_);
};

TEST_F(CounterTest, InOrderNothingIsLost) {
  for (int i = 0; i < 5; ++i) increment(*first_);
  for (int i = 0; i < 3; ++i) increment(*second_, 1);
  const auto totals = counter_->totals();
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->accepted, 8U);
  EXPECT_EQ(totals->moved, 8U);
  EXPECT_EQ(totals->lost, 0U);
  EXPECT_EQ(totals->lost_max, 0U);
}

TEST_F(CounterTest, TwoThatReadBeforeEitherWritesLoseOne) {
  const auto first = first_->read(0, {});
  const auto second = second_->read(0, {});
  first_->write(0, *first, std::nullopt);
  second_->write(0, *second, std::nullopt);
  const auto totals = counter_->totals();
  EXPECT_EQ(totals->accepted, 2U);
  EXPECT_EQ(totals->moved, 1U);
  EXPECT_EQ(totals->lost, 1U);
  EXPECT_EQ(totals->lost_max, 1U);
}

TEST_F(CounterTest, AStaleWriteLosesAllThatCameBetween) {
  const auto stale = first_->read(0, {});
  for (int i = 0; i < 10; ++i) increment(*second_);
  first_->write(0, *stale, std::nullopt);
  EXPECT_EQ(counter_->totals()->moved, 1U);
  EXPECT_EQ(counter_->totals()->lost, 10U);
}

TEST(KeyWrites, UnknownWritesWidenTheFigureToARange) {
  KeyWrites book;
  for (int i = 0; i < 5; ++i) book.note(WriteResult::accepted);
  for (int i = 0; i < 2; ++i) book.note(WriteResult::unknown);
  book.note(WriteResult::failed);
  book.note(WriteResult::rejected_stale);

  // None of the unknown ones took effect and one accepted one was lost; or both did and three were.
  CounterTotals totals;
  book.add_to(totals, 4);
  EXPECT_EQ(totals.accepted, 5U);
  EXPECT_EQ(totals.rejected_stale, 1U);
  EXPECT_EQ(totals.lost, 1U);
  EXPECT_EQ(totals.lost_max, 3U);

  CounterTotals took_effect;
  book.add_to(took_effect, 6);
  EXPECT_EQ(took_effect.lost, 0U);
  EXPECT_EQ(took_effect.lost_max, 1U);
}

TEST(KeyWrites, AnUnknownWriteOfOneKeyDoesNotHideALossOnAnother) {
  KeyWrites lossy;
  KeyWrites doubtful;
  lossy.note(WriteResult::accepted);
  doubtful.note(WriteResult::unknown);
  CounterTotals totals;
  lossy.add_to(totals, 0);
  doubtful.add_to(totals, 1);
  EXPECT_EQ(totals.lost, 1U);
}

}  // namespace
}  // namespace lockbench::loadgen
