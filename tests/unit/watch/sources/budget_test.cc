#include <gtest/gtest.h>

#include "watch/sources/server_source.h"

namespace lockbench::watch {
namespace {

using std::chrono::milliseconds;

TimePoint after(int ms) { return TimePoint(std::chrono::seconds(10)) + milliseconds(ms); }

int spent(Budget& budget, int from, int to) {
  int all = 0;
  for (int ms = from; ms < to; ++ms) {
    while (budget.spend(1, after(ms))) ++all;
  }
  return all;
}

TEST(CommandBudget, IsKeptOverTime) {
  Budget budget(100);
  EXPECT_LE(spent(budget, 0, 1000), 200) << "what a second holds, and one second";
  EXPECT_NEAR(spent(budget, 1000, 5000), 400, 2);
}

TEST(CommandBudget, TakesBackWhatWasNotUsed) {
  Budget budget(10);
  while (budget.spend(1, after(0))) {
  }
  budget.give_back(2);
  EXPECT_TRUE(budget.spend(2, after(0)));
  EXPECT_FALSE(budget.spend(1, after(0)));
}

TEST(CommandBudget, SaysWhenThereIsSomethingAgain) {
  Budget budget(10);
  while (budget.spend(1, after(0))) {
  }
  EXPECT_EQ(budget.next(2, after(0)), after(200));
  budget.owe(10);
  EXPECT_FALSE(budget.spend(1, after(900)));
}

TEST(CommandBudget, WaitsForWhatItDoesNotHoldYet) {
  const auto env = make_system_env(1);
  Budget budget(100);
  while (budget.spend(1, env->now())) {
  }
  const TimePoint begun_at = env->now();
  EXPECT_TRUE(budget.spend_when_possible(5, *env, {}));
  EXPECT_GE(env->now() - begun_at, milliseconds(30));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(budget.spend_when_possible(1, *env, stop.get_token()));
}

TEST(CommandBudget, BacksOffFromAServerThatGetsSlow) {
  Budget budget(100);
  int ms = 0;
  for (int i = 0; i < 50; ++i) budget.answered(milliseconds(1), after(ms += 50));
  EXPECT_EQ(budget.rate(), 100);
  for (int i = 0; i < 200; ++i) budget.answered(milliseconds(300), after(ms += 50));
  EXPECT_LT(budget.rate(), 10);
  EXPECT_GE(budget.rate(), 100.0 / 16);
  for (int i = 0; i < 100; ++i) budget.answered(milliseconds(1), after(ms += 50));
  EXPECT_EQ(budget.rate(), 100);
}

TEST(CommandBudget, AServerThatIsAlwaysSlowIsAsUsual) {
  Budget budget(100);
  for (int i = 0; i < 200; ++i) budget.answered(milliseconds(300), after(50 * i));
  EXPECT_EQ(budget.rate(), 100);
}

}  // namespace
}  // namespace lockbench::watch
