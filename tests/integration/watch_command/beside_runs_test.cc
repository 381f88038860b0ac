#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

/// A strategy of one store, alone on its keys, or with a queue.
struct BesideRun {
  std::string name;
  std::vector<std::string> load;
  double most_missing;  ///< share of the acquisitions that may not be seen
};

std::ostream& operator<<(std::ostream& out, const BesideRun& beside) { return out << beside.name; }

class WatchBesideRun : public testing::TestWithParam<BesideRun> {};

TEST_P(WatchBesideRun, SeesWhatTheRunDid) {
  const BesideRun& beside = GetParam();
  const auto server = own_redis({.durable = false});
  const Scratch scratch;
  const Setting setting{.environment = {{"LOCKBENCH_REDIS", server->url()}}};
  Program watch(scratch,
                {"watch", "--locks", "lockbench:*", "--duration", "1h", "--record", "seen.json",
                 "--budget", "20000"},
                setting);
  ASSERT_TRUE(watch.says("CLIENT TRACKING"));
  std::vector<std::string> arguments = {"run", beside.name, "--warmup", "0s",      "--duration",
                                        "3s",  "--quiet",   "--out",    "run.json"};
  arguments.insert(arguments.end(), beside.load.begin(), beside.load.end());
  const Outcome ran = lockbench(scratch, arguments, setting);
  ASSERT_EQ(ran.code, 0) << ran.err;
  watch.signal(SIGTERM);
  ASSERT_EQ(watch.finish().code, 105);

  const Json result = read_result(scratch / "run.json"), seen = read_result(scratch / "seen.json");
  const Json& run = run_of(result, beside.name);
  const Json& locks = seen.at("observed").at(0);
  SCOPED_TRACE(locks.dump());
  const double acquired = run.at("outcomes").at("acquired"), counted = locks.at("acquisitions");
  // Before the load each client takes a lock or two that the run does not count.
  constexpr double kClients = 4;
  EXPECT_LE(counted, acquired + 2 * kClients);
  EXPECT_GE(counted, acquired * (1 - beside.most_missing));
  EXPECT_EQ(locks.at("expired_while_held"), 0);
  EXPECT_EQ(locks.at("owner_changed"), 0);
  // From the grant to the release, as the store sees both: a few ms more than the client.
  const auto near = [&](const char* figure) {
    const double held = run.at("hold").at(figure), saw = locks.at("hold").at(figure);
    EXPECT_NEAR(saw, held, 0.1 * held + 0.005) << figure;
  };
  near("p50");
}

INSTANTIATE_TEST_SUITE_P(
    OfRedis, WatchBesideRun,
    testing::Values(
        BesideRun{"redis-set-nx-lua",
                  {"--clients", "4", "--keys", "per-client", "--hold", "50ms", "--think", "20ms"},
                  0.01},
        BesideRun{"redis-fenced",
                  {"--clients", "4", "--keys", "per-client", "--hold", "50ms", "--think", "20ms"},
                  0.01},
        BesideRun{"redis-reentrant",
                  {"--clients", "4", "--keys", "per-client", "--hold", "50ms", "--think", "20ms"},
                  0.01},
        BesideRun{"redis-queue", {"--clients", "4", "--hold", "20ms"}, 0.5}),
    [](const auto& tested) {
      std::string name = tested.param.name;
      std::ranges::replace(name, '-', '_');
      return name;
    });

/// The number behind "key = " in the first line that begins so.
double number_of(const std::string& toml, const std::string& key) {
  for (const std::string& line : lines_of(toml)) {
    if (line.starts_with(key + " = ")) return std::stod(line.substr(key.size() + 3));
  }
  throw std::runtime_error("no " + key + " in " + toml);
}

TEST(WatchedWorkload, IsThatOfTheRun) {
  const auto server = own_redis({.durable = false});
  const Scratch scratch;
  const Setting setting{.environment = {{"LOCKBENCH_REDIS", server->url()}}};
  Program watch(scratch,
                {"watch", "--locks", "lockbench:*", "--record", "seen.json", "--budget", "20000",
                 "--workload", "seen.toml"},
                setting);
  ASSERT_TRUE(watch.says("CLIENT TRACKING"));
  const Outcome ran =
      lockbench(scratch,
                {"run", "redis-set-nx-lua", "--rate", "100", "--keys", "20", "--key-skew", "0.9",
                 "--hold", "exp(10ms)", "--clients", "8", "--warmup", "0s", "--duration", "10s",
                 "--quiet", "--out", "run.json"},
                setting);
  ASSERT_EQ(ran.code, 0) << ran.err;
  watch.signal(SIGTERM);
  ASSERT_EQ(watch.finish().code, 0);

  const Json run = run_of(read_result(scratch / "run.json"), "redis-set-nx-lua");
  const Json hold = read_result(scratch / "seen.json").at("observed").at(0).at("hold");
  const std::string toml = read_file(scratch / "seen.toml");
  SCOPED_TRACE(toml);
  const auto within_a_tenth = [](double seen, double done) { EXPECT_NEAR(seen, done, done / 10); };
  within_a_tenth(number_of(toml, "rate"), run.at("sections_per_second"));
  within_a_tenth(hold.at("mean"), run.at("hold").at("mean"));
  within_a_tenth(hold.at("p99"), run.at("hold").at("p99"));
  within_a_tenth(number_of(toml, "key-skew"), 0.9);
  const Outcome again = lockbench(scratch,
                                  {"run", "redis-set-nx-lua", "--config", "seen.toml", "--duration",
                                   "500ms", "--quiet", "--out", "again.json"},
                                  setting);
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST(WatchBesideRunOfNone, SaysWhatItCannotSee) {
  const auto server = own_redis({.durable = false});
  const Scratch scratch;
  const Setting setting{.environment = {{"LOCKBENCH_REDIS", server->url()}}};
  Program watch(scratch, {"watch", "--locks", "lockbench:*", "--record", "seen.json"}, setting);
  ASSERT_TRUE(watch.says("CLIENT TRACKING"));
  lockbench(scratch, {"run", "none", "--duration", "300ms", "--quiet"}, setting);
  watch.signal(SIGTERM);
  EXPECT_EQ(watch.finish().code, 0);
  const Json seen = read_result(scratch / "seen.json");
  EXPECT_TRUE(seen.at("observed").empty()) << "what takes no lock on a server is not there";
  EXPECT_FALSE(seen.at("sources").at(0).at("unseen").empty());
}

}  // namespace
}  // namespace lockbench::test
