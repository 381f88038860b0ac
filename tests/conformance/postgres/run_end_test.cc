#include <gtest/gtest.h>

#include <stop_token>

#include "loadgen/record/metered_env.h"
#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/postgres/postgres_test_store.h"
#include "tests/support/fiber_lock.h"

namespace lockbench::test {
namespace {

// Many, as they all cancel their waits at once; each needs a second connection for it.
constexpr int kWaiters = 40;

/// A client of a run that ends: its waits stop, but not its commands.
class ClientOfRun {
 public:
  ClientOfRun(Bench& bench, int number, const std::stop_token& run_over)
      : system_(make_system_env(static_cast<std::uint64_t>(number))),
        env_(*system_, run_over),
        lock_(make_carried(bench.descriptor(), Context{.endpoints = endpoints_,
                                                       .options = options_,
                                                       .env = env_,
                                                       .services = bench.services(),
                                                       .client = number})) {}

  void wait_for(const std::string& key) {
    thread_ = std::jthread([this, key] {
      result_ = lock_->acquire({.key = key,
                                .ttl = kLongTtl,
                                .deadline = env_.now() + kPatience,
                                .stop = abort_.get_token()});
    });
  }
  const AcquireResult& join() {
    if (thread_.joinable()) thread_.join();
    return result_;
  }

 private:
  const StrategyOptions options_{.command_timeout = kPatience};
  const Endpoints endpoints_{{"postgres", {url_of(shared_postgres().server().port())}}};
  std::unique_ptr<Env> system_;
  loadgen::MeteredEnv env_;
  std::stop_source abort_;
  std::unique_ptr<LockStrategy> lock_;
  AcquireResult result_;
  std::jthread thread_;
};

class RunEnd : public testing::TestWithParam<const char*> {};

TEST_P(RunEnd, EveryWaitIsAbandonedAndNoneStaysInTheQueue) {
  HeldBench bench(kLongTtl, *find_strategy(GetParam()));
  std::stop_source over;
  std::vector<std::unique_ptr<ClientOfRun>> waiters;
  for (int number = 1; number <= kWaiters; ++number) {
    waiters.push_back(std::make_unique<ClientOfRun>(bench, number, over.get_token()));
    waiters.back()->wait_for(bench.key());
  }
  ASSERT_TRUE(eventually([] { return shared_postgres().waiting() == kWaiters; }));

  over.request_stop();
  for (const auto& waiter : waiters) {
    EXPECT_EQ(waiter->join().outcome, AcquireOutcome::abandoned) << waiter->join().reason;
  }
  EXPECT_EQ(shared_postgres().waiting(), 0);
  EXPECT_EQ(bench.holder->release(bench.held), ReleaseOutcome::released);
  EXPECT_TRUE(bench.becomes_free());
}

INSTANTIATE_TEST_SUITE_P(Of, RunEnd, testing::Values("postgres-advisory", "postgres-row"),
                         [](const auto& tested) { return std::string(tested.param).substr(9); });

}  // namespace
}  // namespace lockbench::test
