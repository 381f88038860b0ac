#include <gtest/gtest.h>

#include <fstream>

#include "tests/hazards/support/fixtures.h"
#include "tests/support/eventually.h"

// A client process carries out requests, and dies or stops at the requested command.

namespace lockbench::hazards::test {
namespace {

using namespace std::chrono_literals;
using Action = CommandFault::Action;
using Place = CommandFault::Place;

class Clients : public testing::Test {
 protected:
  Actor& client(std::string_view name) { return play_.client(name); }

  Stage play_{"redis-set-nx-check"};
};

TEST_F(Clients, ExcludeEachOther) {
  Actor& one = client("one");
  Actor& other = client("other");
  const Grant held = one.must_acquire();
  EXPECT_EQ(other.acquire().outcome, AcquireOutcome::refused);
  other.start_acquire(5s);
  other.await_waiting();
  EXPECT_EQ(one.release(held), ReleaseOutcome::released);
  const Grant next = other.finish_acquire();
  EXPECT_TRUE(next.granted());
  EXPECT_GT(next.answered_at, held.answered_at);
  EXPECT_GE(*next.valid_until - next.asked_at, play_.ttl());
}

TEST_F(Clients, CountTheCommandsOfAnAcquisitionAndARelease) {
  Actor& one = client("one");
  one.warm_up();
  EXPECT_EQ(one.acquire_commands(), 1);  // SET
  EXPECT_EQ(one.release_commands(), 2);  // GET, DEL
}

TEST_F(Clients, DieBetweenTwoCommands) {
  play_.set_ttl(30s);
  Actor& one = client("one");
  const Grant held = one.must_acquire();
  one.arm(Action::die, Place::after, 1);
  one.start_release(held);
  one.await_death();
  // The owner was checked, but the key was not deleted.
  EXPECT_NE(play_.store().value_of(play_.key()), "");
  EXPECT_THROW(one.release(held), Failure);
}

TEST_F(Clients, StandStillBetweenTwoCommandsAndGoOn) {
  play_.set_ttl(30s);
  Actor& one = client("one");
  const Grant held = one.must_acquire();
  one.arm(Action::stall, Place::before, 2);
  one.start_release(held);
  one.await_stop();
  EXPECT_NE(play_.store().value_of(play_.key()), "");
  one.resume();
  EXPECT_EQ(one.finish_release(), ReleaseOutcome::released);
  EXPECT_EQ(play_.store().value_of(play_.key()), "");
}

TEST_F(Clients, AreNotToldWhatTookEffect) {
  play_.set_ttl(30s);
  Actor& one = client("one");
  const Grant held = one.must_acquire();
  one.arm(Action::drop_answer, Place::after, 2);
  EXPECT_EQ(one.release(held), ReleaseOutcome::failed);
  EXPECT_EQ(play_.store().value_of(play_.key()), "");
  EXPECT_EQ(one.release(held), ReleaseOutcome::not_owner) << "a fault strikes once";
}

TEST_F(Clients, DoNothingWhileTheyAreStopped) {
  play_.set_ttl(30s);
  Actor& one = client("one");
  const Grant held = one.must_acquire();
  one.stop();
  one.start_release(held);
  EXPECT_FALSE(client("other").acquire(200ms).granted());
  one.resume();
  EXPECT_EQ(one.finish_release(), ReleaseOutcome::released);
}

TEST_F(Clients, SayWhatTheyBelieve) {
  Actor& one = client("one");
  const Grant held = one.must_acquire();
  const Belief belief = one.belief(held);
  EXPECT_TRUE(belief.valid);
  EXPECT_EQ(belief.until, held.valid_until);
  // Another client deletes the key; a renewal notices it.
  EXPECT_TRUE(play_.store().remove_key(play_.key()));
  EXPECT_FALSE(play_.store().remove_key(play_.key()));
  EXPECT_EQ(one.renew(held, 1s), RenewOutcome::not_owner);
  EXPECT_FALSE(one.belief(held).valid);
}

TEST_F(Clients, WorkOnACounterThatTheLockAloneProtects) {
  Actor& one = client("one");
  Actor& other = client("other");
  const Grant held = one.must_acquire();
  EXPECT_EQ(play_.counter(), 0U);
  one.read(held);
  EXPECT_EQ(one.write(held), loadgen::WriteResult::accepted);
  one.release(held);
  const Grant next = other.must_acquire();
  other.read(next);
  EXPECT_EQ(other.write(next), loadgen::WriteResult::accepted);
  EXPECT_EQ(play_.counter(), 2U);
  EXPECT_EQ(play_.accepted_writes(), 2U);
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

}  // namespace
}  // namespace lockbench::hazards::test
