#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "strategies/registry.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

TEST(Overview, MeasuresEachLoadAndReportsThemAll) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"overview", "none", "redis-queue", "redis-set-nx-lua", "--duration",
                          "700ms", "--warmup", "200ms", "--contended-grants", "200", "--out",
                          "r.json", "--report", "r.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_result(scratch / "r.json").at("runs").size(), 14U) << "none has no network";
  const std::string page = read_file(scratch / "r.html");
  expect_in(page, "demand: how long a client waits");
  expect_in(page, "Next: lockbench hazards");
  expect_in(page, "demand at 350/s");
  expect_in(page, "lockbench overview none redis-queue redis-set-nx-lua --duration 700ms");
}

TEST(Rtt, IsAddedToEveryRoundTripOfTheLockAndTheCounterHasItsOwnServer) {
  constexpr double kRtt = 0.010;
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch, {"run", "redis-set-nx", "--rtt", "10ms", "--keys", "per-client", "--clients", "4",
                "--iterations", "40", "--warmup", "0ms", "--resource", "redis", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redis-set-nx");
  for (const char* part : {"acquire", "release"}) {
    EXPECT_GE(run.at(part).at("min"), kRtt * 0.99) << part << ", but for the histogram's error";
  }
  EXPECT_EQ(run.at("sections"), 40);
  EXPECT_EQ(run.at("audit").at("counter"), 40);
  EXPECT_TRUE(kept_exclusion(run));
  EXPECT_EQ(result.at("workload").at("rtt"), kRtt);
  const Json& servers = result.at("environment").at("servers");
  EXPECT_NE(servers.at("redis").at("endpoints"), servers.at("counter").at("endpoints"));
}

TEST(ManyClients, RunInOneProcessThatRaisesItsOpenFiles) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch,
                {"run", "redis-set-nx-lua", "--clients", "2000", "--keys", "per-client",
                 "--resource", "redis", "--iterations", "4000", "--out", "r.json"},
                {.open_files = 256});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redis-set-nx-lua");
  EXPECT_EQ(run.at("fairness").at("per_client").size(), 2000U);
  EXPECT_EQ(run.at("errors"), Json::array());
  EXPECT_EQ(run.at("outcomes").at("failed"), 0);
  EXPECT_EQ(run.at("outcomes").at("unknown"), 0);
  EXPECT_GE(run.at("audit").at("increments"), 4000);
  EXPECT_TRUE(kept_exclusion(run));
}

// CPU of servers and machine in a run.

TEST(Resources, TheCpuOfPrivateServersIsKnown) {
  std::vector<std::string> names;
  for (const char* name :
       {"redis-queue", "memcached-add", "etcd", "zookeeper", "postgres-advisory"}) {
    if (find_strategy(name) != nullptr) names.emplace_back(name);
  }
  std::vector<std::string> arguments =
      words("run --clients 4 --warmup 100ms --duration 600ms --hold 0ms --out r.json");
  arguments.insert(arguments.end(), names.begin(), names.end());
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Json& run = run_of(result, name);
    ASSERT_TRUE(run.at("server_cpu_seconds_per_section").is_number());
    EXPECT_GT(run.at("server_cpu_seconds_per_section"), 0);
    const Json& generator = run.at("generator");
    EXPECT_GT(generator.at("machine_cpu_share"), 0);
    EXPECT_TRUE(generator.at("other_cpu_share").is_number());
    EXPECT_TRUE(generator.at("steal_share").is_number());
    // Java needs warm-up until it is steady.
    const double warmup = run.at("warmup_seconds");
    if (name == "zookeeper") {
      EXPECT_GE(warmup, 1);
    } else {
      EXPECT_NEAR(warmup, 0.1, 1e-6);
    }
  }
}

TEST(Choose, MeasuresWhatQualifiesUnderTheLoadThatWasAskedFor) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"choose", "--stores", "redis,postgres", "--fair", "--clients", "8",
                          "--keys", "2", "--rate", "200", "--work-time-p50", "1ms", "--measure",
                          "--measure-time", "12s", "--format", "json", "--out", "r.json"});
  const Json answer = Json::parse(outcome.out);
  const Json result = read_result(scratch / "r.json");
  const std::string first = answer.at("qualify").at(0).at("strategy");
  const bool decided = answer.at("not_decided") == "";
  ASSERT_EQ(outcome.code, decided ? 0 : 5) << outcome.err;
  // Beside other programs, all of its runs may be invalid.
  EXPECT_TRUE(decided || !run_of(result, first).at("generator").at("valid")) << outcome.err;
  if (decided) {
    EXPECT_TRUE(answer.at("ranked_by").at("measured_in").get<std::string>().starts_with("r.json"));
    EXPECT_TRUE(answer.at("ranked_by").at("differences").empty());
  }
  for (const Json& one : answer.at("qualify")) {
    const std::string name = one.at("strategy");
    const Json& run = run_of(result, name);
    EXPECT_EQ(run.at("load").at("clients"), 8) << name;
    EXPECT_EQ(run.at("load").at("rate"), 200) << name;
  }
  EXPECT_GE(answer.at("qualify").size(), 2U);
}

/// Sections long enough, and clients enough, for `none` to lose updates with certainty. Short, but
/// a stalling disk has time.
const std::vector<std::string> run_all{
    "run", "all",        "--hold", "100us",          "--warmup", "50ms",  "--iterations",
    "40",  "--duration", "20s",    "--node-timeout", "5s",       "--out", "deep/in/here.json"};

void expect_that_all_keep_their_promises(const Json& result) {
  EXPECT_EQ(result.at("runs").size(), all_strategies().size());
  EXPECT_TRUE(result.at("skipped").empty());
  EXPECT_FALSE(result.at("interrupted"));
  for (const Descriptor* strategy : all_strategies()) {
    const Json& run = run_of(result, strategy->name);
    SCOPED_TRACE(strategy->name);
    const Json& audit = run.at("audit");
    EXPECT_GT(run.at("sections"), 0);
    EXPECT_EQ(run.at("sections"), run.at("outcomes").at("acquired"));
    // The audit spans the warm-up too.
    EXPECT_GE(audit.at("increments"), run.at("sections"));
    if (strategy->traits.updates) {
      EXPECT_NE(audit.at("verdict"), "violated");
      EXPECT_EQ(audit.at("lost_updates"), 0);
      EXPECT_EQ(audit.at("counter"), audit.at("increments"));
    } else if (strategy->traits.promises_exclusion) {
      EXPECT_TRUE(kept_exclusion(run));
    } else {
      EXPECT_EQ(audit.at("verdict"), "unprotected");
      EXPECT_GT(audit.at("lost_updates"), 0);
    }
  }
}

TEST(AllStrategies, RunKeepTheirPromisesAndAreShown) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, run_all);
  const Json result = read_result(scratch / "deep/in/here.json");
  for (const Json& run : result.at("runs")) {
    EXPECT_EQ(run.at("errors"), Json::array()) << run.at("strategy");
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_that_all_keep_their_promises(result);
  const auto shown = [&](const char* format) {
    return lockbench(scratch, {"show", "deep/in/here.json", "--format", format}).out;
  };
  EXPECT_EQ(shown("table"), outcome.out);
  EXPECT_EQ(Json::parse(shown("json")), result);
}

TEST(Overview, IsWhatRunsWithoutACommandAndTheResultIsSavedByItsName) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"--duration", "200ms", "--warmup", "0ms", "none", "local-mutex"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> files = scratch.files();
  ASSERT_EQ(files.size(), 1U) << "only the result stays";
  const Json result = read_result(scratch / files.front());
  EXPECT_EQ(files.front(), fmt::format("results/runs/{}.json", result.at("id").get<std::string>()));
  EXPECT_NE(outcome.err.find(files.front()), std::string::npos);
  EXPECT_EQ(run_of(result, "none").at("load").at("name"), "alone");
  expect_in(outcome.out, "saturated: ");
}

/// A fault of each kind for private servers, healed after half a second.
struct Struck {
  std::string name, strategy, fault;
  bool harms = false;  ///< it fails sections, which is not an error of the run
  std::vector<std::string> options{};

  friend std::ostream& operator<<(std::ostream& out, const Struck& struck) {
    return out << struck.name;
  }
};

class RunFault : public testing::TestWithParam<Struck> {};

TEST_P(RunFault, IsMadeHealedAndMarkedAndTheRunKeepsItsPromise) {
  const auto& [name, strategy, fault, harms, options] = GetParam();
  const Scratch scratch;
  const std::string timed = fault + "@500ms+500ms";
  std::vector<std::string> arguments = {"run",        strategy,     "--load",         "reacquire",
                                        "--keys",     "per-client", "--warmup",       "200ms",
                                        "--fault",    timed,        "--node-timeout", "1s",
                                        "--duration", "4s",         "--out",          "r.json"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Outcome outcome = lockbench(scratch, arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(result.at("workload").at("fault"), Json::array({timed}));
  const Json& run = run_of(result, strategy);
  ASSERT_EQ(run.at("faults").size(), 1U);
  const Json& mark = run.at("faults").front();
  EXPECT_EQ(mark.at("fault"), fault);
  EXPECT_GE(mark.at("at_seconds"), 0.7);
  EXPECT_GE(mark.at("healed_seconds"), 1.2);
  const Json& outcomes = run.at("outcomes");
  EXPECT_GT(outcomes.at("acquired"), 0);
  if (harms) {
    EXPECT_GT(outcomes.at("failed").get<int>() + outcomes.at("unknown").get<int>(), 0);
  }
  EXPECT_TRUE(kept_exclusion(run));
  for (const Json& reason : run.at("generator").at("reasons")) {
    EXPECT_FALSE(has(reason, "restarted")) << reason << ": the fault did it";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, RunFault,
    testing::Values(Struck{"store_kill", "redis-set-nx-lua", "store-kill", true},
                    Struck{"node_freeze", "redlock-parallel", "node-freeze:2"},
                    Struck{"partition", "redis-set-nx-lua", "partition:0.5"},
                    Struck{"delay", "redis-set-nx-lua", "delay:50ms"},
                    Struck{"failover", "redis-wait", "failover", true, {"--replicas", "2"}}),
    [](const auto& tested) { return tested.param.name; });

/// Another client is granted the lock in the middle of each section.
TEST(FencedResource, TurnsStaleWritersAway) {
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch,
      words("run redis-fenced --redis " + shared_redis().url() +
            " --ttl 100ms --hold 500ms --clients 3 --duration 1500ms --warmup 0ms --wait poll:5ms "
            "--resource redis-fenced --threshold audit.stale_writes_rejected==0 --out r.json"));
  EXPECT_EQ(outcome.code, 3) << "two were inside at once, which fencing does not hinder";
  expect_in(outcome.err, "audit.stale_writes_rejected");
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redis-fenced");
  const Json& audit = run.at("audit");
  EXPECT_GT(audit.at("overlaps"), 0);
  EXPECT_EQ(audit.at("lost_updates"), 0);
  EXPECT_GT(audit.at("stale_writes_rejected"), 0);
  EXPECT_GT(audit.at("increments"), 0);
  EXPECT_EQ(audit.at("fence_regressions"), 0);
  EXPECT_GT(run.at("leases_lost"), 0);
  RedisProbe probe(shared_redis().port());
  EXPECT_TRUE(probe.keys().empty()) << "nothing of the fence is left";
}

TEST(RenewalCommand, MeasuresEachNumberOfLocks) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"renewal", "--redis", shared_redis().url(), "--held", "1", "--held",
                          "300", "--pairs", "1", "--ttl", "600ms", "--duration", "1ms", "--clients",
                          "2", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& runs = result.at("runs");
  ASSERT_EQ(runs.size(), 4U);
  std::vector<int> held;
  for (const Json& run : runs) {
    held.push_back(run.at("load").at("held_locks"));
    EXPECT_GT(run.at("sections_per_second"), 0);
    EXPECT_EQ(run.contains("costs"), held.back() > 0);
    if (held.back() == 0) continue;
    const Json& margin = run.at("renewal").at("margin");
    EXPECT_GT(margin.at("count"), 0);
    EXPECT_LE(margin.at("max"), 0.6) << "no more can be left than was granted";
  }
  EXPECT_EQ(held, (std::vector{0, 1, 0, 300}));
  expect_in(outcome.out, "300 locks renewed: cost to the other clients");
  RedisProbe probe(shared_redis().port());
  EXPECT_TRUE(probe.keys().empty());
}

TEST(RenewalCommand, IsInterruptedAndLeavesNoKey) {
  const Scratch scratch;
  Program program(scratch, {"renewal", "--redis", shared_redis().url(), "--held", "50", "--ttl",
                            "12s", "--out", "r.json"});
  RedisProbe probe(shared_redis().port());
  ASSERT_TRUE(eventually([&] { return probe.keys().size() >= 50; }));
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  EXPECT_TRUE(probe.keys().empty());
  EXPECT_TRUE(read_result(scratch / "r.json").at("interrupted"));
}

}  // namespace
}  // namespace lockbench::test
