#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <ostream>

#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

struct Malformed {
  std::string name;
  Words arguments;
  Words said;                   ///< all of it must stand in the message
  std::string config;           ///< text of config.toml
  std::string secret = "\n\n";  ///< what must not stand there
};

std::ostream& operator<<(std::ostream& out, const Malformed& malformed) {
  return out << malformed.name;
}

Words run_with(Words more) {
  more.insert(more.begin(), {"run", "redis-set-nx"});
  return more;
}

std::vector<Malformed> malformed_options() {
  return {
      {"UnknownCommand", {"rnu"}, {"rnu", "did you mean", "run"}},
      {"UnknownOption", run_with({"--duratoin", "1s"}), {"--duratoin", "--duration"}},
      {"UnknownOptionWithSecret",
       run_with({"--rediss=redis://:hunter2@h"}),
       {"--rediss"},
       "",
       "hunter2"},
      {"DurationWithoutUnit", run_with({"--duration", "5"}), {"--duration", "\"5\""}},
      {"DurationNegative", run_with({"--duration", "-1s"}), {"--duration", "-1s"}},
      {"DurationOfNothing", run_with({"--duration", "0s"}), {"--duration", "0s"}},
      {"DurationEmpty", run_with({"--ttl", ""}), {"--ttl"}},
      {"DurationUnitUnknown", run_with({"--warmup", "3parsecs"}), {"--warmup", "3parsecs"}},
      {"DistributionUnknown", run_with({"--hold", "gauss(1ms)"}), {"--hold", "gauss(1ms)"}},
      {"DistributionBackwards", run_with({"--hold", "uniform(3ms,1ms)"}), {"--hold", "3ms"}},
      {"OptionWithoutValue", run_with({"--clients"}), {"--clients"}},
      {"OptionTwice", run_with({"--clients", "2", "--clients", "3"}), {"--clients", "2 times"}},
      {"NoClients", run_with({"--clients", "0"}), {"--clients", "\"0\""}},
      {"ClientsNotWhole", run_with({"--clients", "2.5"}), {"--clients", "2.5"}},
      {"FormatUnknown", run_with({"--format", "yaml"}), {"--format", "yaml"}},
      {"WaitUnknown", run_with({"--wait", "prayer"}), {"--wait", "prayer"}},
      {"ThresholdUnknown", run_with({"--threshold", "speed>9000"}), {"--threshold", "speed"}},
      {"StrategyUnknown", {"run", "redis-setnxx"}, {"redis-setnxx", "did you mean redis-setnx"}},
      {"StrategyUrl", {"run", "redis://:hunter2@h"}, {"--redis"}, "", "hunter2"},
      {"GlobWithoutMatch", {"run", "zzz-*"}, {"zzz-*"}},
      {"WaitOfAStrategyThatCannot",
       {"run", "local-mutex", "--wait", "poll:1ms"},
       {"--wait", "local-mutex", "poll"}},
      {"ArrivalInClosedLoop", run_with({"--arrival", "constant"}), {"--arrival", "--rate"}},
      {"SkewWithoutChoice",
       run_with({"--keys", "per-client", "--key-skew", "1"}),
       {"--key-skew", "per-client"}},
      {"CounterWithoutResource",
       run_with({"--counter-redis", "redis://localhost"}),
       {"--counter-redis", "--resource"}},
      {"RttOfAServerElsewhere",
       run_with({"--rtt", "5ms", "--redis", "redis://localhost"}),
       {"--rtt", "--redis"}},
      {"RttBeyondTheTimeout", run_with({"--rtt", "3s"}), {"--rtt", "--store-timeout"}},
      {"ListTakesNoStrategies", {"list", "redis-set-nx"}, {"list", "redis-set-nx"}},
  };
}

std::vector<Malformed> malformed_places() {
  const std::string nowhere = fmt::format("127.0.0.1:{}", closed_port());
  return {
      {"UrlScheme",
       run_with({"--redis", "http://ann:hunter2@localhost"}),
       {"--redis"},
       "",
       "hunter2"},
      {"UrlPort",
       run_with({"--redis", "redis://ann:hunter2@localhost:99999"}),
       {"--redis", "port"},
       "",
       "hunter2"},
      {"UrlDatabase",
       run_with({"--redis", "redis://:hunter2@localhost/first"}),
       {"--redis", "database"},
       "",
       "hunter2"},
      {"Unreachable",
       run_with({"--redis", fmt::format("redis://ann:hunter2@{}", nowhere)}),
       {"--redis", nowhere},
       "",
       "hunter2"},
      {"UnreachableCounter",
       {"run", "none", "--resource", "redis", "--counter-redis", "redis://" + nowhere},
       {"counter", nowhere}},
      {"UnreachableSocket",
       run_with({"--redis", "unix:///no/such/socket"}),
       {"--redis", "/no/such/socket"}},
      {"ConfigMissing", run_with({"--config", "no.toml"}), {"no.toml", "No such file"}},
      {"ConfigFolder", run_with({"--config", "/"}), {"/: cannot be read"}},
      {"ConfigSyntax",
       run_with({"--config", "config.toml"}),
       {"config.toml", "line 2"},
       "ttl = \"1s\"\nclients = = 3\n"},
      {"ConfigMisspelt",
       run_with({"--config", "config.toml"}),
       {"config.toml", "clinets", "clients"},
       "clinets = 3\n"},
      {"ConfigWrongType",
       run_with({"--config", "config.toml"}),
       {"config.toml", "clients", "whole number"},
       "clients = \"four\"\n"},
      {"ConfigWrongValue",
       run_with({"--config", "config.toml"}),
       {"config.toml", "ttl", "soon"},
       "ttl = \"soon\"\n"},
      {"ConfigContradiction",
       run_with({"--config", "config.toml"}),
       {"--arrival", "--rate"},
       "arrival = \"poisson\"\n"},
      {"ConfigSecret",
       run_with({"--config", "config.toml"}),
       {"config.toml", "redis"},
       "redis = \"redis://:hunter2@localhost:x\"\n",
       "hunter2"},
      {"OutBelowADevice", run_with({"--out", "/dev/null/r.json"}), {"--out", "/dev/null"}},
      {"OutIsAFolder", run_with({"--out", "."}), {"--out"}},
  };
}

std::vector<Malformed> all_malformed() {
  std::vector<Malformed> all = malformed_options();
  for (Malformed& malformed : malformed_places()) all.push_back(std::move(malformed));
  return all;
}

/// In the place of the real one: leaves a file behind when it is started.
std::string with_tell_tale_server(const Scratch& scratch) {
  const std::string path = scratch.write("redis-server", "#!/bin/sh\n: > \"$0.was-started\"\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return scratch.path().string() + ":/usr/bin:/bin";
}

class UsageError : public testing::TestWithParam<Malformed> {};

TEST_P(UsageError, IsOneLineAndNothingElseHappens) {
  const Malformed& given = GetParam();
  const Scratch scratch;
  const std::string path = with_tell_tale_server(scratch);
  if (!given.config.empty()) scratch.write("config.toml", given.config);
  const Words files_before = scratch.files();

  const Outcome outcome = lockbench(scratch, given.arguments, {.environment = {{"PATH", path}}});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  const Words lines = lines_of(outcome.err);
  EXPECT_EQ(lines.size(), 1U) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("lockbench: ")) << outcome.err;
  EXPECT_TRUE(outcome.err.ends_with("\n"));
  for (const std::string& words : given.said) {
    EXPECT_NE(outcome.err.find(words), std::string::npos) << words << " is not in " << outcome.err;
  }
  EXPECT_EQ(outcome.err.find(given.secret), std::string::npos) << outcome.err;
  EXPECT_LT(outcome.took, std::chrono::seconds(3));
  EXPECT_EQ(scratch.files(), files_before);
}

INSTANTIATE_TEST_SUITE_P(Run, UsageError, testing::ValuesIn(all_malformed()),
                         [](const auto& test) { return test.param.name; });

/// So that the tests above can fail.
TEST(UsageErrors, AServerThatWasStartedWouldHaveBeenSeen) {
  const Scratch scratch;
  const std::string path = with_tell_tale_server(scratch);
  const Outcome outcome = lockbench(scratch, run_with({}), {.environment = {{"PATH", path}}});
  EXPECT_EQ(outcome.code, 1) << "it is no real server, so the strategy that was named cannot run";
  EXPECT_NE(outcome.err.find("redis-set-nx cannot run here"), std::string::npos) << outcome.err;
  const Words files = scratch.files();
  EXPECT_NE(std::find(files.begin(), files.end(), "redis-server.was-started"), files.end());
}

}  // namespace
}  // namespace lockbench::test
