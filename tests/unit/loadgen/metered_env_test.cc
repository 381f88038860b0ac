#include "loadgen/record/metered_env.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/sim_env.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

class MeteredEnvTest : public testing::Test {
 protected:
  static constexpr CommandInfo kCommand{.store = "s", .endpoint = "e", .name = "GET", .key = "k"};
  static constexpr CommandInfo kBlocking{
      .store = "s", .endpoint = "e", .name = "LOCK", .key = "k", .blocks = true};

  void expect(const Effort& effort) const {
    EXPECT_EQ(env_.effort().commands, effort.commands);
    EXPECT_EQ(env_.effort().wakes, effort.wakes);
    EXPECT_EQ(env_.effort().round_trip, effort.round_trip);
    EXPECT_EQ(env_.effort().backoff, effort.backoff);
    EXPECT_EQ(env_.effort().notified, effort.notified);
  }

  SimClock clock_;
  SimEnv world_{clock_};
  MeteredEnv env_{world_};
};

TEST_F(MeteredEnvTest, CountsCommandsAndTheirTime) {
  for (const Duration taken : {3ms, 4ms}) {
    env_.before_command(kCommand);
    clock_.advance(taken);
    env_.after_command(kCommand, CommandEnd::answered);
    clock_.advance(1s);  // no command is under way
  }
  expect({.commands = 2, .round_trip = 7ms});
}

TEST_F(MeteredEnvTest, TellsOfEachAnswerInTheOrderOfItsCommand) {
  std::vector<std::pair<Duration, TimePoint>> answers;
  MeteredEnv env(world_, {},
                 [&](std::size_t kind, std::string_view command, Duration taken, TimePoint ended) {
                   EXPECT_EQ(kind, 0U);
                   EXPECT_EQ(command, "GET");
                   answers.emplace_back(taken, ended);
                 });
  const TimePoint begin = clock_.now();
  env.before_command(kCommand);
  env.before_command(kBlocking);
  env.after_command(kBlocking, CommandEnd::answered);
  clock_.advance(1ms);
  env.before_command(kCommand);
  clock_.advance(2ms);
  env.after_command(kCommand, CommandEnd::answered);
  clock_.advance(3ms);
  env.after_command(kCommand, CommandEnd::answered);
  env.before_command(kCommand);
  env.after_command(kCommand, CommandEnd::lost);
  EXPECT_THAT(answers, testing::ElementsAre(testing::Pair(3ms, begin + 3ms),
                                            testing::Pair(5ms, begin + 6ms)));
}

TEST_F(MeteredEnvTest, KnowsCommandsByNameAndServerWhereverTheirTextsLie) {
  std::vector<std::string> answers;
  MeteredEnv env(world_, {},
                 [&](std::size_t kind, std::string_view command, Duration taken, TimePoint) {
                   answers.push_back(fmt::format("{} {} {}", kind, command, taken / 1ms));
                 });
  // As a connection's records may move before the answer comes.
  const auto tell = [&](const char* endpoint, const char* name, bool ends) {
    const std::string server(endpoint), command(name);
    const CommandInfo info{.store = "s", .endpoint = server, .name = command, .key = {}};
    if (ends) {
      env.after_command(info, CommandEnd::answered);
    } else {
      env.before_command(info);
    }
  };
  for (int round = 0; round < 2; ++round) {
    for (const char* server : {"one", "two", "three"}) {
      tell(server, "SET", false);
      tell(server, "GET", false);
      clock_.advance(1ms);
    }
    for (const char* server : {"three", "one", "two"}) tell(server, "SET", true);
    for (const char* server : {"two", "one", "three"}) tell(server, "GET", true);
    EXPECT_THAT(answers, testing::ElementsAre("4 SET 1", "0 SET 3", "2 SET 2", "3 GET 2", "1 GET 3",
                                              "5 GET 1"));
    answers.clear();
  }
  tell("two", "GET", false);
  tell("two", "GET", true);
  EXPECT_THAT(answers, testing::ElementsAre("3 GET 0"));
}

TEST_F(MeteredEnvTest, CommandsThatOverlapAreOneStretchOfTime) {
  env_.before_command(kCommand);
  clock_.advance(1ms);
  env_.before_command(kCommand);
  clock_.advance(2ms);
  env_.after_command(kCommand, CommandEnd::answered);
  clock_.advance(4ms);
  env_.after_command(kCommand, CommandEnd::lost);
  expect({.commands = 2, .round_trip = 7ms});
}

TEST_F(MeteredEnvTest, WhatNobodyWaitsForAnyMoreTakesNoTime) {
  for (int i = 0; i < 3; ++i) env_.before_command(kCommand);
  clock_.advance(2ms);
  env_.after_command(kCommand, CommandEnd::answered);
  env_.leave_behind();  // granted: two answers are still to come
  EXPECT_EQ(env_.effort().round_trip, 2ms);
  clock_.advance(1s);  // the section
  for (int i = 0; i < 3; ++i) env_.before_command(kCommand);
  clock_.advance(4ms);
  for (int i = 0; i < 5; ++i) env_.after_command(kCommand, CommandEnd::answered);
  expect({.commands = 6, .round_trip = 6ms});
  clock_.advance(1s);
  env_.leave_behind();
  EXPECT_EQ(env_.effort().round_trip, 6ms) << "nothing is under way";
}

TEST_F(MeteredEnvTest, ASleepIsNoRoundTripWhateverIsUnderWay) {
  env_.before_command(kCommand);
  clock_.advance(1ms);
  env_.wait(nullptr, clock_.now() + 50ms, {});
  env_.before_command(kCommand);
  clock_.advance(2ms);
  env_.after_command(kCommand, CommandEnd::answered);
  env_.after_command(kCommand, CommandEnd::answered);
  expect({.commands = 2, .round_trip = 3ms, .backoff = 50ms});
}

TEST_F(MeteredEnvTest, SleepIsBackoffAndAnAwaitedEventIsNotification) {
  env_.wait(nullptr, clock_.now() + 5ms, {});
  expect({.backoff = 5ms});
  const auto event = env_.make_event();
  clock_.at(clock_.now() + 3ms, [&] { event->set(); });
  EXPECT_EQ(env_.wait(event.get(), clock_.now() + 1s, {}), WaitResult::signalled);
  expect({.wakes = 1, .backoff = 5ms, .notified = 3ms});
  EXPECT_EQ(env_.wait(event.get(), clock_.now() + 2ms, {}), WaitResult::timed_out);
  expect({.wakes = 1, .backoff = 5ms, .notified = 5ms});  // no event ended this wait
}

TEST_F(MeteredEnvTest, ABlockingCommandIsAWaitForTheServersWakeUp) {
  for (const CommandEnd end : {CommandEnd::answered, CommandEnd::lost, CommandEnd::in_vain}) {
    env_.before_command(kBlocking);
    clock_.advance(9ms);
    env_.after_command(kBlocking, end);
  }
  // The last two waits were not woken.
  expect({.commands = 3, .wakes = 1, .notified = 27ms});
}

TEST_F(MeteredEnvTest, TheEndOfTheRunEndsAWaitAndNotTheRequestsOwnStop) {
  std::stop_source over, request;
  MeteredEnv env(world_, over.get_token());
  request.request_stop();
  EXPECT_EQ(env.wait(nullptr, clock_.now() + 5ms, request.get_token()), WaitResult::timed_out);
  clock_.at(clock_.now() + 2ms, [&] { over.request_stop(); });
  EXPECT_EQ(env.wait(nullptr, clock_.now() + 5ms, request.get_token()), WaitResult::stopped);
  EXPECT_EQ(env.effort().backoff, 7ms);
  // Without a run, the request's stop ends the wait.
  EXPECT_EQ(env_.wait(nullptr, clock_.now() + 5ms, request.get_token()), WaitResult::stopped);
  // Likewise for a wait at the server.
  EXPECT_EQ(env.waiting_stop(request.get_token()), over.get_token());
  EXPECT_FALSE(env.waiting_stop({}).stop_possible()) << "a clean-up is not to be stopped";
  EXPECT_EQ(env_.waiting_stop(request.get_token()), request.get_token());
}

TEST_F(MeteredEnvTest, WhatWatchesBehindItStillDecides) {
  struct DroppingEnv : ForwardingEnv {
    using ForwardingEnv::ForwardingEnv;
    CommandFate before_command(const CommandInfo&) override { return CommandFate::drop; }
    CommandFate after_command(const CommandInfo&, CommandEnd) override { return CommandFate::drop; }
  } dropping(world_);
  MeteredEnv env(dropping);
  EXPECT_EQ(env.before_command(kCommand), CommandFate::drop);
  EXPECT_EQ(env.after_command(kCommand, CommandEnd::lost), CommandFate::drop);
  EXPECT_EQ(env.effort().commands, 1U);
}

}  // namespace
}  // namespace lockbench::loadgen
