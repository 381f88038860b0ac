#include <gtest/gtest.h>

#include <tuple>

#include "tests/hazards/support/fixtures.h"
#include "tests/support/eventually.h"
#include "tests/support/test_names.h"

// How client processes die and stop at a command, and how private stores end sessions.

namespace lockbench::hazards::test {
namespace {

using namespace std::chrono_literals;
using Action = CommandFault::Action;
using Place = CommandFault::Place;

class Clients : public testing::Test {
 protected:
  Clients() { play_.set_ttl(30s); }

  Stage play_{"redis-set-nx-check"};
  Actor& one_ = play_.client("one");
};

TEST_F(Clients, CountTheCommandsOfAnAcquisitionAndARelease) {
  one_.warm_up();
  EXPECT_EQ(one_.acquire_commands(), 1);  // SET
  EXPECT_EQ(one_.release_commands(), 2);  // GET, DEL
}

TEST_F(Clients, StandStillBetweenTwoCommandsAndGoOn) {
  const Grant held = one_.must_acquire();
  one_.arm(Action::stall, Place::before, 2);
  one_.start_release(held);
  one_.await_stop();
  EXPECT_NE(play_.store().value_of(play_.key()), "");
  one_.resume();
  EXPECT_EQ(one_.finish_release(), ReleaseOutcome::released);
  EXPECT_EQ(play_.store().value_of(play_.key()), "");
}

TEST_F(Clients, SayWhyTheyCannotDoSomething) {
  ClientProcess process(server_pool().client_program());
  process.send(ClientSetup{.strategy = "no-such-lock"});
  const auto answer = process.receive(lockbench::test::kPatience);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error, "no such strategy: no-such-lock");
}

TEST_F(Clients, ThatCannotBeStartedAreAFailureOfTheStage) {
  EXPECT_THROW(ClientProcess("/no/such/program"), Failure);
}

class Sessions : public testing::TestWithParam<std::string_view> {
 protected:
  Stage play_{GetParam()};
};

TEST_P(Sessions, EndWithTheirOwnLocksAlone) {
  Actor& neighbour = play_.client("neighbour");
  neighbour.must_acquire();
  const std::string neighbours = play_.key();
  play_.change_key();
  Actor& holder = play_.client("holder");
  Actor& waiter = play_.client("waiter");
  holder.must_acquire();
  waiter.start_acquire(20s);
  waiter.await_waiting();
  play_.store().end_session(play_.key());
  EXPECT_TRUE(waiter.finish_acquire().granted()) << "of two in the queue it was the holder's";

  play_.store().end_session(play_.key());
  play_.store().end_session(neighbours);
}

TEST_P(Sessions, CannotBeEndedWhereNobodyHoldsTheLock) {
  Actor& holder = play_.client("holder");
  EXPECT_EQ(holder.release(holder.must_acquire()), ReleaseOutcome::released);
  EXPECT_THROW(play_.store().end_session(play_.key()), Failure);
}

INSTANTIATE_TEST_SUITE_P(, Sessions,
                         testing::Values("zookeeper", "zookeeper-herd", "etcd", "chubby",
                                         "postgres-advisory", "postgres-row", "mysql-get-lock",
                                         "mysql-row"),
                         [](const auto& tested) {
                           return lockbench::test::test_name_of(tested.param);
                         });

TEST(Setups, ThatAreNotOfferedSayWhy) {
  using Why = deployment::NotStarted::Why;
  const std::tuple<std::string_view, deployment::Setup, Why> none[] = {
      {"etcd", Setup::clocked, Why::unplayable},
      {"etcd", Setup::cramped, Why::never_needed},
      {"nats-kv", Setup::clocked, Why::unplayable},
      {"nats-kv", Setup::replicated, Why::unplayable},
      {"zookeeper", Setup::cramped, Why::never_needed},
      {"mysql-row", Setup::cramped, Why::never_needed},
      {"mysql-row", Setup::replicated, Why::unplayable},
      {"postgres-row", Setup::cramped, Why::never_needed}};
  for (const auto& [name, setup, why] : none) {
    const auto store = server_pool().store(strategy(name), setup);
    ASSERT_FALSE(store) << name;
    EXPECT_EQ(store.error().why, why) << name;
    EXPECT_NE(store.error().reason, "") << name;
  }
}

}  // namespace
}  // namespace lockbench::hazards::test
