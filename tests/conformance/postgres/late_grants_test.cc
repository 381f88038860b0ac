#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/postgres/postgres_ground.h"

namespace lockbench::test {
namespace {

/// The lease is over by the time its grant is heard of; then `then` happens to the next command.
class LateGrant : public ForwardingEnv {
 public:
  LateGrant(Env& inner, CommandFate then) : ForwardingEnv(inner), then_(then) {}
  TimePoint now() override { return ForwardingEnv::now() + late_; }
  CommandFate before_command(const CommandInfo& command) override {
    return late_ > Duration::zero() ? then_ : ForwardingEnv::before_command(command);
  }
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override {
    if (command.name == "INSERT") late_ = std::chrono::hours(1);
    return ForwardingEnv::after_command(command, end);
  }

 private:
  const CommandFate then_;
  Duration late_{};
};

AcquireResult acquire_late(CommandFate then) {
  const Descriptor& strategy = *find_strategy("postgres-lease");
  const Bench bench(strategy);
  const Endpoints endpoints{{"postgres", {url_of(shared_postgres().server().port())}}};
  const StrategyOptions options;
  const auto system = make_system_env(7);
  LateGrant late(*system, then);
  Services services;
  const auto lock = make_strategy(
      strategy, {.endpoints = endpoints, .options = options, .env = late, .services = services});
  return lock->acquire({.key = bench.key(), .ttl = kLongTtl, .deadline = TimePoint{}, .stop = {}});
}

TEST(LateGrants, AreGivenBack) {
  const AcquireResult late = acquire_late(CommandFate::proceed);
  EXPECT_EQ(late.outcome, AcquireOutcome::refused) << late.reason;
  EXPECT_THAT(shared_postgres().keys(), testing::IsEmpty());
}

TEST(LateGrants, ThatCannotBeGivenBackAreUnknown) {
  const AcquireResult late = acquire_late(CommandFate::drop);
  EXPECT_EQ(late.outcome, AcquireOutcome::unknown);
  EXPECT_THAT(late.reason, testing::HasSubstr("127.0.0.1"));
  EXPECT_THAT(shared_postgres().keys(), testing::Not(testing::IsEmpty()));
}

}  // namespace
}  // namespace lockbench::test
