#include "loadgen/record/redis_counter.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "loadgen/record/scripts.h"

namespace lockbench::loadgen {
namespace {

using redis::Reply;

/// A server that knows GET, SET with a TTL, UNLINK and the counter's scripts, and fails where it is
/// told to.
struct FakeServer {
  std::map<std::string, std::string> values;
  std::set<std::string> ttls;  ///< "86400000"
  int unlinked = 0;            ///< in all, there or not
  std::optional<StoreError::Kind>
      next_failure;  ///< of the next command; unanswered ones take effect

  StoreResult<Reply> execute(const std::vector<std::string>& command) {
    const auto failure = std::exchange(next_failure, std::nullopt);
    const bool takes_effect = !failure || *failure == StoreError::Kind::unanswered;
    Reply reply;
    if (takes_effect) reply = answer(command);
    if (failure) return tl::unexpected(StoreError{*failure, "fake:1: told to fail"});
    return reply;
  }

 private:
  Reply answer(const std::vector<std::string>& command) {
    if (command[0] == "EVALSHA") return run_script(command);
    Reply reply;
    if (command[0] == "SET") {
      EXPECT_EQ(command.at(3), "PX");
      ttls.insert(command.at(4));
      values[command[1]] = command[2];
      reply.type = Reply::Type::status;
      reply.text = "OK";
    } else if (command[0] == "UNLINK") {
      reply.type = Reply::Type::integer;
      for (std::size_t i = 1; i < command.size(); ++i, ++unlinked) {
        reply.integer += static_cast<std::int64_t>(values.erase(command[i]));
      }
    } else if (const auto found = values.find(command[1]); found != values.end()) {
      reply.type = Reply::Type::string;
      reply.text = found->second;
    }
    return reply;
  }

  /// EVALSHA sha 2 counter fence number ttl [value]: as the .lua files say.
  Reply run_script(const std::vector<std::string>& command) {
    const bool writes = command[1] == scripts::counter_write_fenced.sha1;
    EXPECT_TRUE(writes || command[1] == scripts::counter_read_fenced.sha1);
    const std::string &counter = command.at(3), &fence = command.at(4), &number = command.at(5);
    const bool stale = values.contains(fence) && std::stoull(values[fence]) > std::stoull(number);
    Reply reply;
    reply.type = writes ? Reply::Type::integer : Reply::Type::nil;
    if (stale) return reply;
    values[fence] = number;
    ttls.insert(command.at(6));
    if (writes) {
      values[counter] = command.at(7);
      reply.integer = 1;
    } else {
      reply.type = Reply::Type::string;
      reply.text = values.contains(counter) ? values[counter] : "0";
    }
    return reply;
  }
};

class FakeConnection : public redis::Connection {
 public:
  explicit FakeConnection(FakeServer& server) : server_(server) {}

  const std::string& display() const override { return display_; }
  StoreResult<void> connect(const std::stop_token&) override {
    if (!server_.next_failure) return {};
    return tl::unexpected(StoreError{*server_.next_failure, "fake:1: connection refused"});
  }
  void queue(redis::Command command, std::string_view, Duration) override {
    queued_.emplace_back(command.begin(), command.end());
  }
  void flush(const std::stop_token&) override {}
  StoreResult<Reply> receive(const std::stop_token&) override {
    const auto command = queued_.front();
    queued_.pop_front();
    return server_.execute(command);
  }
  std::optional<StoreResult<Reply>> receive_within(Duration, const std::stop_token& stop) override {
    return receive(stop);
  }
  int descriptor() const override { return -1; }
  void close() noexcept override {}

 private:
  const std::string display_ = "fake:1";
  FakeServer& server_;
  std::deque<std::vector<std::string>> queued_;
};

class FakeFactory : public redis::ConnectionFactory {
 public:
  explicit FakeFactory(FakeServer& server) : server_(server) {}
  std::unique_ptr<redis::Connection> make(const redis::Endpoint&, Duration, Env&) override {
    return std::make_unique<FakeConnection>(server_);
  }
  std::unique_ptr<redis::Subscriber> make_subscriber(const redis::Endpoint&, Duration,
                                                     Env&) override {
    return nullptr;  // a counter listens to nobody
  }

 private:
  FakeServer& server_;
};

class RedisCounterTest : public testing::Test {
 protected:
  static constexpr int kKeys = 600;  // more than go out in one batch

  static std::string name(int key) {
    return "lockbench:test:{k" + std::to_string(key) + "}:counter";
  }

  auto make(bool checks_fencing = false) {
    redis::Endpoint endpoint;
    endpoint.host = "fake";
    endpoint.port = 1;
    return make_redis_counter({.connections = factory_,
                               .endpoint = endpoint,
                               .env = *env_,
                               .keys = kKeys,
                               .key_name = name,
                               .checks_fencing = checks_fencing});
  }

  std::unique_ptr<Env> env_ = make_system_env(1);
  FakeServer server_;
  FakeFactory factory_{server_};
};

TEST_F(RedisCounterTest, CountsFromWhereTheKeysStood) {
  server_.values[name(1)] = "40";
  const auto counter = make();
  ASSERT_TRUE(counter);
  const auto session = (*counter)->open(*env_);
  for (const int key : {0, 1, 599}) {
    const auto reading = session->read(key, {});
    ASSERT_TRUE(reading);
    EXPECT_EQ(session->write(key, *reading, std::nullopt), WriteResult::accepted);
  }
  EXPECT_EQ(server_.values[name(1)], "41");
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
  const auto write = [&](StoreError::Kind failure) {
    const auto reading = session->read(0, {});
    server_.next_failure = failure;
    return session->write(0, *reading, std::nullopt);
  };
  EXPECT_EQ(write(StoreError::Kind::not_sent), WriteResult::failed);
  EXPECT_EQ(write(StoreError::Kind::rejected), WriteResult::failed);
  EXPECT_EQ(write(StoreError::Kind::unanswered), WriteResult::unknown);
  const auto totals = (*counter)->totals();
  EXPECT_EQ(totals->moved, 1U);
  EXPECT_EQ(totals->lost, 0U);
}

TEST_F(RedisCounterTest, FailuresToReadAreErrorsThatNameTheEndpoint) {
  const auto counter = make();
  const auto session = (*counter)->open(*env_);
  server_.next_failure = StoreError::Kind::unanswered;
  EXPECT_EQ(session->read(0, {}).error(), "fake:1: told to fail");
  server_.next_failure = StoreError::Kind::unanswered;
  EXPECT_EQ((*counter)->totals().error(), "fake:1: told to fail");
  EXPECT_TRUE((*counter)->totals());
  for (const char* nonsense : {"", "ten", "10x", "-1"}) {
    server_.values[name(0)] = nonsense;
    const auto reading = session->read(0, {});
    ASSERT_FALSE(reading) << nonsense;
    EXPECT_NE(reading.error().find("fake:1"), std::string::npos);
  }
}

TEST_F(RedisCounterTest, CannotBeMadeWithoutAServer) {
  server_.next_failure = StoreError::Kind::not_sent;
  const auto counter = make();
  ASSERT_FALSE(counter);
  EXPECT_EQ(counter.error(), "fake:1: connection refused");
}

TEST_F(RedisCounterTest, LeavesNothingBehind) {
  const auto counter = make();
  const auto session = (*counter)->open(*env_);
  for (int key = 0; key < kKeys; ++key) session->write(key, Reading{0}, std::nullopt);
  server_.values["somebody else's"] = "1";
  ASSERT_EQ(server_.values.size(), kKeys + 1U);
  ASSERT_TRUE((*counter)->remove_keys({}));
  EXPECT_EQ(server_.values.size(), 1U);
}

TEST_F(RedisCounterTest, RemovesOnlyWhatItWroteAndAStopEndsThat) {
  const auto counter = make();
  const auto session = (*counter)->open(*env_);
  for (const int key : {3, 400}) session->write(key, Reading{0}, std::nullopt);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ((*counter)->remove_keys(stop.get_token()).error(), "fake:1: stopped before the end");
  EXPECT_EQ(server_.unlinked, 0);
  ASSERT_TRUE((*counter)->remove_keys({}));
  EXPECT_EQ(server_.unlinked, 2) << "of 600";
}

TEST_F(RedisCounterTest, WhatItWritesEndsByItself) {
  for (const bool checks_fencing : {false, true}) {
    const auto counter = make(checks_fencing);
    const auto session = (*counter)->open(*env_);
    EXPECT_EQ(session->write(0, *session->read(0, 1), 1), WriteResult::accepted);
  }
  EXPECT_EQ(server_.ttls, std::set<std::string>{"86400000"});
}

TEST_F(RedisCounterTest, AFenceTurnsLowerNumbersAwayAndCountsThem) {
  const auto counter = make(true);
  const auto session = (*counter)->open(*env_);
  EXPECT_EQ(session->write(7, *session->read(7, 10), 10), WriteResult::accepted);
  EXPECT_EQ(session->write(7, *session->read(7, 10), 10), WriteResult::accepted) << "equal";
  EXPECT_TRUE(session->read(7, 9)->stale);
  EXPECT_EQ(session->write(7, {.value = 2}, 9), WriteResult::rejected_stale);
  EXPECT_FALSE(session->read(8, 9)->stale) << "another key";
  EXPECT_EQ(server_.values[name(7)], "2");
  const auto totals = (*counter)->totals();
  EXPECT_EQ(totals->accepted, 2U);
  EXPECT_EQ(totals->rejected_stale, 2U);
  EXPECT_EQ(totals->moved, 2U);
  EXPECT_EQ(totals->lost, 0U);
}

TEST_F(RedisCounterTest, AFenceKnowsASuccessorByItsReading) {
  const auto counter = make(true);
  const auto session = (*counter)->open(*env_);
  const auto paused = session->read(0, 1);
  ASSERT_TRUE(session->read(0, 2));
  EXPECT_EQ(session->write(0, *paused, 1), WriteResult::rejected_stale);
}

TEST_F(RedisCounterTest, AFenceDoesNotCheckWhoHasNoNumber) {
  const auto counter = make(true);
  const auto session = (*counter)->open(*env_);
  ASSERT_EQ(session->write(0, *session->read(0, 5), 5), WriteResult::accepted);
  EXPECT_EQ(session->write(0, *session->read(0, {}), {}), WriteResult::accepted);
  EXPECT_EQ((*counter)->totals()->rejected_stale, 0U);
}

TEST_F(RedisCounterTest, WithoutAFenceNumbersDoNotMatter) {
  const auto counter = make();
  const auto session = (*counter)->open(*env_);
  ASSERT_EQ(session->write(0, *session->read(0, 5), 5), WriteResult::accepted);
  EXPECT_EQ(session->write(0, *session->read(0, 4), 4), WriteResult::accepted);
  EXPECT_EQ((*counter)->totals()->rejected_stale, 0U);
}

TEST_F(RedisCounterTest, AFenceTellsFailedAndUnknownWritesApart) {
  const auto counter = make(true);
  const auto session = (*counter)->open(*env_);
  const auto write = [&](StoreError::Kind failure) {
    const auto reading = session->read(0, 1);
    server_.next_failure = failure;
    return session->write(0, *reading, 1);
  };
  EXPECT_EQ(write(StoreError::Kind::unanswered), WriteResult::unknown);
  EXPECT_EQ(write(StoreError::Kind::not_sent), WriteResult::failed);
  EXPECT_EQ(write(StoreError::Kind::rejected), WriteResult::failed);
  server_.next_failure = StoreError::Kind::unanswered;
  EXPECT_EQ(session->read(0, 1).error(), "fake:1: told to fail");
}

TEST_F(RedisCounterTest, AFenceIsRemovedWithItsCounter) {
  server_.values = {{"other", "1"}};
  const auto counter = make(true);
  const auto session = (*counter)->open(*env_);
  for (const int key : {0, 599}) session->write(key, *session->read(key, 3), 3);
  EXPECT_EQ(server_.values.size(), 5U);
  ASSERT_TRUE((*counter)->remove_keys({}));
  EXPECT_EQ(server_.values, (std::map<std::string, std::string>{{"other", "1"}}));
}

}  // namespace
}  // namespace lockbench::loadgen
