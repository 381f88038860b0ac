#include "tests/unit/cli/fixtures.h"
#include "watch/workload.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

TEST(WatchedWorkload, IsWhatRunCapacityAndChooseTake) {
  const TemporaryFile file("watched \"1\".toml", "");
  const watch::ObservedWorkload workload{.rate = 120.5,
                                         .constant_arrival = true,
                                         .clients = 20,
                                         .keys = 50,
                                         .key_skew = 1.04,
                                         .work_p50 = 2ms,
                                         .work_p99 = 12ms,
                                         .ttl = 10s,
                                         .shared_share = 0.25,
                                         .hold = {{0, 1ms}, {0.5, 2ms}, {1, 12ms}},
                                         .remarks = {"No TTL \"was\" seen."}};
  const auto written = watch::write_workload(workload, file.path());
  ASSERT_TRUE(written) << written.error();

  const auto run = parse_run({"--config", file.path()});
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(run->workload.rate, 120.5);
  EXPECT_EQ(run->workload.arrival, loadgen::Arrival::constant);
  EXPECT_EQ(run->workload.key_skew, 1.04);
  EXPECT_EQ(run->workload.shared_share, 0.25);
  const auto capacity = parse<CapacityOptions>({"--config", file.path()});
  ASSERT_TRUE(capacity) << capacity.error();
  EXPECT_EQ(capacity->planned_rate, 120.5);
  for (const loadgen::Workload& load : {run->workload, capacity->workload}) {
    EXPECT_EQ(load.clients, 20);
    EXPECT_EQ(load.keys, 50);
    EXPECT_EQ(load.ttl, 10s);
    EXPECT_EQ(load.hold.mean(), 4'250us);
  }
  const auto choose = parse<ChooseOptions>({"--config", file.path(), "--measure"});
  ASSERT_TRUE(choose) << choose.error();
  EXPECT_EQ(choose->requirements.rate, 120.5);
  EXPECT_EQ(choose->requirements.clients, 20);
  EXPECT_EQ(choose->requirements.key_skew, 1.04);
  EXPECT_EQ(choose->requirements.work_p50, 2ms);
  EXPECT_EQ(choose->requirements.work_p99, 12ms);
  EXPECT_TRUE(choose->requirements.shared);
}

}  // namespace
}  // namespace lockbench::cli
