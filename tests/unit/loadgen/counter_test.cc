#include "loadgen/record/counter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loadgen/record/redis_counter.h"
#include "tests/support/fake_redis.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using redis::FakeRedis;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(MemoryCounter, AStaleWriteLosesAllThatCameBetween) {
  const auto env = make_system_env(1);
  const auto counter = make_memory_counter(2);
  const auto slow = counter->open(*env), busy = counter->open(*env);
  const auto stale = slow->read(0, {});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(busy->write(0, *busy->read(0, {}), std::nullopt), WriteResult::accepted);
  }
  slow->write(0, *stale, std::nullopt);
  EXPECT_EQ(counter->totals()->accepted, 11U);
  EXPECT_EQ(counter->totals()->moved, 1U);
  EXPECT_EQ(counter->totals()->lost, 10U);
  EXPECT_EQ(counter->totals()->lost_max, 10U);
}

TEST(KeyWrites, UnknownWritesWidenTheFigureToARange) {
  KeyWrites book;
  for (int i = 0; i < 5; ++i) book.note(WriteResult::accepted);
  for (int i = 0; i < 2; ++i) book.note(WriteResult::unknown);
  book.note(WriteResult::failed);
  book.note(WriteResult::rejected_stale);

  // Either no unknown write took effect and one accepted write was lost, or both did and three
  // were.
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

class RedisCounterTest : public testing::Test {
 protected:
  static constexpr int kKeys = 600;  // more than one batch

  static std::string name(int key) {
    return "lockbench:test:{k" + std::to_string(key) + "}:counter";
  }

  auto make() {
    redis::Endpoint endpoint;
    endpoint.host = "fake";
    endpoint.port = 1;
    return make_redis_counter({.connections = server_,
                               .endpoint = endpoint,
                               .env = *env_,
                               .keys = kKeys,
                               .key_name = name});
  }

  std::unique_ptr<Env> env_ = make_system_env(1);
  SimClock clock_;
  FakeRedis server_{clock_};
};

TEST_F(RedisCounterTest, CountsFromWhereTheKeysStood) {
  server_.set(name(1), "40");
  const auto counter = make();
  ASSERT_TRUE(counter);
  const auto session = (*counter)->open(*env_);
  for (const int key : {0, 1, 599}) {
    const auto reading = session->read(key, {});
    ASSERT_TRUE(reading);
    EXPECT_EQ(session->write(key, *reading, std::nullopt), WriteResult::accepted);
  }
  EXPECT_EQ(server_.value(name(1)), "41");
  const auto totals = (*counter)->totals();
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->accepted, 3U);
  EXPECT_EQ(totals->moved, 3U);
  EXPECT_EQ(totals->lost, 0U);
}

TEST_F(RedisCounterTest, TwoThatReadBeforeEitherWritesLoseOne) {
  const auto counter = make();
  const auto first = (*counter)->open(*env_);
  const auto second = (*counter)->open(*env_);
  const auto first_reading = first->read(7, {});
  const auto second_reading = second->read(7, {});
  first->write(7, *first_reading, std::nullopt);
  second->write(7, *second_reading, std::nullopt);
  EXPECT_EQ((*counter)->totals()->lost, 1U);
}

TEST_F(RedisCounterTest, TellsFailedAndUnknownWritesApart) {
  const auto counter = make();
  const auto session = (*counter)->open(*env_);
  const auto write = [&](FakeRedis::Failure failure) {
    const auto reading = session->read(0, {});
    server_.fail(1, failure);
    return session->write(0, *reading, std::nullopt);
  };
  EXPECT_EQ(write(FakeRedis::Failure::not_sent), WriteResult::failed);
  EXPECT_EQ(write(FakeRedis::Failure::rejected), WriteResult::failed);
  EXPECT_EQ(write(FakeRedis::Failure::answer_lost), WriteResult::unknown);
  const auto totals = (*counter)->totals();
  EXPECT_EQ(totals->moved, 1U);
  EXPECT_EQ(totals->lost, 0U);
}

TEST_F(RedisCounterTest, FailuresToReadAreErrorsThatNameTheEndpoint) {
  const auto counter = make();
  const auto session = (*counter)->open(*env_);
  server_.fail(1, FakeRedis::Failure::answer_lost);
  EXPECT_EQ(session->read(0, {}).error(), "fake:1: told to lose the answer");
  server_.fail(1, FakeRedis::Failure::answer_lost);
  EXPECT_EQ((*counter)->totals().error(), "fake:1: told to lose the answer");
  EXPECT_TRUE((*counter)->totals());
  for (const char* nonsense : {"", "ten", "10x", "-1"}) {
    server_.set(name(0), nonsense);
    const auto reading = session->read(0, {});
    ASSERT_FALSE(reading) << nonsense;
    EXPECT_NE(reading.error().find("fake:1"), std::string::npos);
  }
}

TEST_F(RedisCounterTest, CannotBeMadeWithoutAServer) {
  server_.refuse_connections(true);
  const auto counter = make();
  ASSERT_FALSE(counter);
  EXPECT_EQ(counter.error(), "fake:1: connection refused");
}

TEST_F(RedisCounterTest, LeavesNothingBehind) {
  const auto counter = make();
  const auto session = (*counter)->open(*env_);
  for (int key = 0; key < kKeys; ++key) session->write(key, Reading{0}, std::nullopt);
  server_.set("somebody else's", "1");
  ASSERT_EQ(server_.keys(), kKeys + 1U);
  ASSERT_TRUE((*counter)->remove_keys({}));
  EXPECT_EQ(server_.keys(), 1U);
  EXPECT_EQ(server_.value("somebody else's"), "1");
}

TEST_F(RedisCounterTest, RemovesOnlyWhatItWroteAndAStopEndsThat) {
  const auto counter = make();
  const auto session = (*counter)->open(*env_);
  for (const int key : {3, 400}) session->write(key, Reading{0}, std::nullopt);
  std::stop_source stop;
  stop.request_stop();
  (void)server_.take_commands();
  EXPECT_EQ((*counter)->remove_keys(stop.get_token()).error(), "fake:1: stopped before the end");
  EXPECT_THAT(server_.take_commands(), IsEmpty());
  ASSERT_TRUE((*counter)->remove_keys({}));
  EXPECT_THAT(server_.take_commands(), ElementsAre("UNLINK " + name(3) + " " + name(400)));
}

TEST_F(RedisCounterTest, WhatItWritesStaysAndWithoutAFenceNumbersDoNotMatter) {
  const auto counter = make();
  const auto session = (*counter)->open(*env_);
  for (const std::uint64_t number : {5, 4}) {
    EXPECT_EQ(session->write(0, *session->read(0, number), number), WriteResult::accepted);
  }
  EXPECT_EQ(server_.ttl(name(0)), std::nullopt);
  EXPECT_EQ((*counter)->totals()->rejected_stale, 0U);
}

}  // namespace
}  // namespace lockbench::loadgen
