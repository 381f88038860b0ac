#include "cli/console/deploy.h"
#include "strategies/registry.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

TEST(FaultOption, IsRepeatableAndSorted) {
  const auto options =
      parse_run({"--fault", "delay:2ms@2s+500ms", "--fault", "store-kill@1s+500ms"}).value();
  ASSERT_THAT(options.faults, SizeIs(2));
  EXPECT_EQ(options.faults[0].kind, loadgen::FaultKind::store_kill);
  EXPECT_EQ(options.faults[1].delay, 2ms);
  EXPECT_EQ(
      workload_record(options).at("fault"),
      results::OptionValue(std::vector<std::string>{"store-kill@1s+500ms", "delay:2ms@2s+500ms"}));
  EXPECT_EQ(workload_record(parse_run({}).value()).at("fault"), results::OptionValue(nullptr));
}

/// The reason why a strategy's servers cannot have a fault.
std::string unfit_for(const std::string& strategy, const std::string& fault,
                      const LoadOptions& options = {}) {
  return unfit(loadgen::parse_fault(fault).value(), *find_strategy(strategy), options);
}

TEST(FaultFit, FollowsFromWhereALockLives) {
  EXPECT_THAT(unfit_for("local-mutex", "delay:1ms@1s"), StartsWith("it has no server"));
  EXPECT_THAT(unfit_for("redlock", "store-kill@1s"), HasSubstr("use node-kill"));
  EXPECT_THAT(unfit_for("redlock", "store-freeze@1s"), HasSubstr("use node-freeze"));
  EXPECT_THAT(unfit_for("redlock", "node-kill:5@1s"), IsEmpty());
  EXPECT_THAT(unfit_for("redlock", "node-kill:6@1s"), HasSubstr("more than its 5 nodes"));
  EXPECT_THAT(unfit_for("redlock", "failover@1s"), StartsWith("its servers are independent"));
  EXPECT_THAT(unfit_for("redis-setnx", "node-freeze@1s"), StartsWith("it runs on one server"));
  for (const char* fault : {"store-kill@1s", "store-freeze@1s", "failover@1s", "partition@1s"}) {
    EXPECT_THAT(unfit_for("redis-setnx", fault), IsEmpty()) << fault;
    EXPECT_THAT(unfit_for("redis-wait", fault), IsEmpty()) << fault;
  }
  LoadOptions alone;
  alone.replicas = 0;
  EXPECT_THAT(unfit_for("redis-setnx", "failover@1s", alone), HasSubstr("--replicas"));
}

TEST(FaultOption, OnARedisClusterIsOneThatItsShardsCanHave) {
  const auto error = [](std::vector<std::string> args) {
    args.emplace_back("--redis-cluster");
    return error_of(args);
  };
  EXPECT_EQ(error({"--fault", "failover@1s"}), "accepted");
  EXPECT_EQ(error({"--fault", "client-kill@1s"}), "accepted");
  EXPECT_THAT(error({"--fault", "store-kill@1s"}), HasSubstr("--redis-cluster cannot"));
  EXPECT_THAT(error({"--rtt", "1ms"}), HasSubstr("--redis-cluster cannot"));
  EXPECT_THAT(error({"--redis", "redis://h"}), HasSubstr("redis+cluster://"));
  EXPECT_TRUE(request_of(parse_run({"--redis-cluster"}).value()).sharded);
}

TEST(FaultFit, ClustersAreForFaultsThatTheySurvive) {
  LoadOptions options;
  EXPECT_FALSE(request_of(options).clusters);
  options.faults = {loadgen::parse_fault("store-kill@1s").value()};
  EXPECT_FALSE(request_of(options).clusters);
  options.faults = {loadgen::parse_fault("node-kill@1s").value()};
  EXPECT_TRUE(request_of(options).clusters);
  EXPECT_FALSE(request_of(options).lines);
  for (const char* store : {"etcd", "zookeeper"}) {
    const auto* const kind = deployment::find_private_store_kind(store);
    EXPECT_TRUE(kind == nullptr || kind->clusters) << store;
  }
  EXPECT_FALSE(deployment::find_private_store_kind("redis")->clusters);
}

TEST(FaultDeploy, AStrategyThatCannotHaveItIsAnErrorWhenNamedAndElseSkipped) {
  std::vector<results::Skipped> skipped;
  const auto error = [&](const RunOptions& options, const char* strategy, bool named = true) {
    std::vector<Selected> selected = {{find_strategy(strategy), named}};
    const auto deployment = deploy(options, selected, skipped);
    return deployment ? "deployed" : deployment.error();
  };
  RunOptions options = parse_run({"--fault", "store-kill@1s"}).value();
  EXPECT_EQ(error(options, "local-mutex"),
            "local-mutex cannot run here: it has no server that store-kill@1s could strike");
  EXPECT_THAT(error(options, "local-mutex", false),
              StartsWith("nothing can run here: it has no server"));
  EXPECT_THAT(skipped, SizeIs(1));
  EXPECT_EQ(error(options, "redis-cas-retry"),
            "redis-cas-retry cannot run here: it takes no lock: a fault finds no holder");
  EXPECT_THAT(error(parse_run({"--resource", "redis"}).value(), "redis-cas-retry"),
              HasSubstr("it is the counter itself"));
  EXPECT_THAT(
      error(parse_run({"--keys", "4", "--locks-per-section", "2"}).value(), "redis-cas-retry"),
      HasSubstr("a section of several needs some"));
  options.servers["redis"] = {"redis://127.0.0.1:1"};
  EXPECT_EQ(
      error(options, "redis-setnx"),
      "--fault: store-kill@1s strikes private servers only: it cannot be combined with --redis");
  EXPECT_EQ(
      error(parse_run({"--fault", "partition:0.1@1s", "--clients", "9"}).value(), "redis-setnx"),
      "--fault: partition:0.1@1s cuts off none of the 9 clients of load saturated");
  // Of this load at either of its rates, 32 clients.
  EXPECT_EQ(
      error(parse_run({"--fault", "partition:0.1@1s", "--load", "demand"}).value(), "local-mutex"),
      "local-mutex cannot run here: it has no server that partition:0.1@1s could strike");
  EXPECT_THAT(
      error(parse_run({"--fault", "partition:0.01@1s", "--load", "demand"}).value(), "redis-setnx"),
      HasSubstr("none of the 32 clients of load demand"));
}

}  // namespace
}  // namespace lockbench::cli
