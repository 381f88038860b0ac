#include <fmt/format.h>

#include <ostream>

#include "tests/support/servers.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

struct Malformed {
  std::string name;
  Words arguments;
  Words said;                   ///< parts of the message
  std::string config;           ///< text of the file CONFIG
  std::string secret = "\n\n";  ///< must not appear in the message
};

std::ostream& operator<<(std::ostream& out, const Malformed& malformed) {
  return out << malformed.name;
}

Words run_with(Words more) {
  more.insert(more.begin(), {"run", "redis-set-nx"});
  return more;
}

/// Arguments or file contain "hunter2", which must not appear in the message.
Malformed with_secret(std::string name, Words arguments, Words said, std::string config = "") {
  return {std::move(name), std::move(arguments), std::move(said), std::move(config), "hunter2"};
}

std::vector<Malformed> malformed_simulations() {
  return {
      {"SimulationOfNoStrategy", {"simulate"}, {"needs a strategy"}},
      {"SimulationOfAnotherStore",
       {"simulate", "local-mutex"},
       {"only strategies on redis, memcached"}},
      {"SweepOfOneValue",
       {"simulate", "redlock", "--sweep", "ttl=1s"},
       {"\"ttl=1s\"", "ttl=1s,3s,10s"}},
      {"SweepOfAnotherOption",
       {"simulate", "redlock", "--sweep", "seed=1,2"},
       {"\"seed=1,2\"", "options: ttl, hold"}},
      {"SweepWithAWrongValue",
       {"simulate", "redlock", "--sweep", "ttl=1s,soon"},
       {"--sweep ttl: \"soon\""}},
      {"SweepBesideItsOption",
       {"simulate", "redlock", "--sweep", "ttl=1s,2s", "--ttl", "3s"},
       {"--sweep ttl cannot be combined with --ttl"}},
      {"SweepWithAWrongPoint",
       {"simulate", "redlock", "--sweep", "rtt=1ms,5s"},
       {"--rtt must be shorter than --store-timeout"}},
      {"HuntWithASweep", {"simulate", "redlock", "--hunt", "--sweep", "ttl=1s,2s"}, {"--sweep"}},
      {"TraceOfASweep",
       {"simulate", "redlock", "--trace-out", "t", "--sweep", "ttl=1s,2s"},
       {"--trace-out"}},
      {"CalibrationOfRegions",
       {"simulate", "redlock", "--calibrate", "r.json", "--regions", "eu"},
       {"--calibrate requires no --regions"}},
      {"CalibrationByNoFile",
       {"simulate", "redlock", "--calibrate", "/no/such.json"},
       {"--calibrate", "/no/such.json"}},
      {"SimulationOfTwoLengths",
       {"simulate", "redlock", "--years", "1", "--duration", "1s"},
       {"--years", "--duration"}},
      {"TraceOfManySeeds",
       {"simulate", "redlock", "--trace-out", "t", "--seeds", "2"},
       {"--trace-out requires --seeds 1"}},
      {"SimulationInNoRegion", {"simulate", "redlock", "--regions", "mars"}, {"eu, us, ap"}},
      {"PausesWithoutALength", {"simulate", "redlock", "--pauses", "1%"}, {"1%@2s"}},
      {"HuntWithALoad", {"simulate", "redlock", "--hunt", "--ttl", "1s"}, {"--ttl", "--hunt"}},
      {"HuntAndReplay", {"simulate", "redlock", "--hunt", "--replay", "1"}, {"--replay"}},
      {"ReplayOfNoTrial", {"simulate", "redlock", "--replay", "x"}, {"\"x\"", "SEED,clients=N"}},
      {"ReplayOfTwo", {"simulate", "redlock", "redis-fenced", "--replay", "1"}, {"one strategy"}},
      {"MinutesWithoutAHunt", {"simulate", "redlock", "--minutes", "1"}, {"requires --hunt"}},
      {"ShrinkingNothing", {"simulate", "redlock", "--shrink"}, {"requires --hunt or --replay"}},
  };
}

std::vector<Malformed> malformed_options() {
  return {
      {"UnknownCommand", {"rnu"}, {"rnu", "did you mean", "run"}},
      {"UnknownOption", run_with({"--duratoin", "1s"}), {"--duratoin", "--duration"}},
      with_secret("UnknownOptionWithSecret", run_with({"--rediss=redis://:hunter2@h"}),
                  {"--rediss"}),
      with_secret("UnknownOptionBeforeASecret", run_with({"--redsi", "redis://:hunter2@h"}),
                  {"--redsi", "--redis"}),
      with_secret("StrategyUrl", {"run", "redis://:hunter2@h"}, {"--redis"}),
      {"OptionWithItsValueAsAValue", run_with({"--out", "--format=json"}), {"--out needs a value"}},
      with_secret("CommandUrl", {"redis://:hunter2@host"}, {"--redis"}),
      {"CommandThatIsAStrategy", {"redis-setnx"}, {"did you mean lockbench run redis-setnx?"}},
      with_secret("StrategyDsn", {"run", "host=127.0.0.1 password=hunter2"}, {"--postgres"}),
      {"ControlCharacters", run_with({"--clients", "a\nb"}), {"--clients", "a b"}},
      {"SharedModeThatNoneHas",
       {"run", "--shared-share", "0.5", "--out", "/dev/null", "none"},
       {"--shared-share"}},
      {"LingerWithoutMetrics", run_with({"--linger", "5s"}), {"--metrics-listen"}},
      {"DoctorTakesNoArguments", {"doctor", "redis"}, {"first argument", "only options"}},
      with_secret("DsnWithoutQuotes", {"doctor", "--postgres", "host=db", "password=hunter2"},
                  {"--postgres", "quotes"}),
      with_secret("DsnInPieces", {"doctor", "--postgres=host=db", "password", "=", "hunter2"},
                  {"--postgres", "quotes"}),
      with_secret("DsnWithoutQuotesForStrategies",
                  {"run", "--postgres", "host=db", "password=hunter2"}, {"--postgres", "quotes"}),
      with_secret("DsnWithoutQuotesForFiles",
                  {"choose", "--postgres", "host=db", "password=hunter2"},
                  {"--postgres", "quotes"}),
      with_secret("CommandDsn", {"password=hunter2"}, {"--redis"}),
      with_secret("PasswordBehindALetter", run_with({"-phunter2"}), {"-p"}),
      with_secret("PasswordBehindAColon", run_with({"--redis:hunter2"}), {"--redis"}),
      {"RenewalOfNoLocks", {"renewal", "--held", "0"}, {"--held", "from 1 to 1000000"}},
      {"RenewalWithoutPairs", {"renewal", "--pairs", "0"}, {"--pairs", "from 1 to 1000"}},
      {"RenewalTakesNoStrategies", {"renewal", "redis-queue"}, {"only options"}},
      {"ListTakesNoStrategies", {"list", "redis-set-nx"}, {"redis-set-nx", "only options"}},
      {"CheckOfNoFile", {"check"}, {"one history: lockbench check FILE"}},
      {"CheckOfAnotherForm", {"check", "h.json"}, {"h.json", "*.edn, *.jsonl"}},
      {"CheckOfAnUnknownModel",
       {"check", "h.edn", "--model", "lock"},
       {"--model", "\"lock\"", "semaphore:N"}},
      {"HistoryOfAResumedRun",
       run_with({"--history", "h.edn", "--resume", "--out", "r.json"}),
       {"--history", "--resume"}},
      {"HazardsWithoutALock",
       {"hazards", "--strategies", "redis-cas-retry"},
       {"redis-cas-retry cannot run here: it takes no lock"}},
      {"CommandBehindItsOptions", {"--redis", "redis://h", "list"}, {"no such strategy \"list\""}},
      {"ChooseWithoutARequirement", {"choose"}, {"--stores", "--work-time-p99"}},
  };
}

std::vector<Malformed> malformed_experiments() {
  return {
      {"ObjectiveThatCannotBeKept", {"capacity", "--slo", "acquire.p99>20ms"}, {"use <"}},
      {"ObjectiveThatCannotBeMissed", {"capacity", "--slo", "fairness.jain<=0.5"}, {"use >"}},
      {"PlannedRate", {"capacity", "--planned-rate", "0"}, {"\"0\" is not a number from"}},
      {"CapacityDrawsRates", {"capacity", "--rate", "5"}, {"--rate"}},
      {"ObjectiveOfEachClient",
       {"capacity", "--slo", "fairness.by_client.p99<50ms"},
       {"has no samples of fairness.by_client.p99"}},
      {"ObjectiveOfTheWorstClient",
       {"capacity", "--slo", "fairness.by_client.worst_p99<50ms"},
       {"use a percentile such as acquire.p99"}},
      {"ObjectiveWithoutSamples",
       {"capacity", "--slo", "application.pool_wait.p99<50ms"},
       {"has no samples of application.pool_wait.p99"}},
      {"CapacityOfNoStrategy", {"capacity", "--slo", "acquire.p99<20ms"}, {"needs a strategy"}},
      {"CapacityWithoutAnObjective", {"capacity", "redis-queue"}, {"needs an objective: --slo"}},
      {"CapacityOfNoSuchStrategy",
       {"capacity", "redis-qeue", "--slo", "acquire.p99<20ms"},
       {"redis-qeue"}},
      {"QuorumOfTooManyNodes", {"quorum", "--nodes", "5", "--nodes", "16"}, {"from 1 to 15"}},
      {"QuorumOfNoNodes", {"quorum", "--nodes", "0"}, {"from 1 to 15"}},
      {"QuorumOfTooManyClients", {"quorum", "--clients", "1001"}, {"from 1 to 1000"}},
      {"QuorumOfNodesThatAreNotSlow", {"quorum", "--slow-by", "0s"}, {"1ms to 1h"}},
      {"QuorumWithATimeInsteadOfSlowNodes", {"quorum", "--slow", "20ms"}, {"from 0 to 15"}},
      {"QuorumOfMoreNodesDownThanItHas",
       {"quorum", "--nodes", "3", "--down", "4"},
       {"--down 4", "--nodes has 3"}},
      {"QuorumHarmsOnlyItsOwnServers", {"quorum", "--redis", "redis://h"}, {"--redis"}},
      {"QuorumTakesNoStrategies", {"quorum", "redlock"}, {"only options"}},
  };
}

std::vector<Malformed> malformed_workloads() {
  return {
      {"MoreLocksThanKeys", run_with({"--locks-per-section", "2"}), {"--keys 2 or more"}},
      {"SeveralLocksOfAClientsOwn",
       run_with({"--locks-per-section", "2", "--keys", "per-client"}),
       {"--locks-per-section", "--keys N"}},
      {"OrderOfOneLock",
       run_with({"--lock-order", "drawn"}),
       {"--lock-order", "--locks-per-section"}},
      {"DeadlocksOfSortedLocks",
       run_with({"--deadlock-timeout", "50ms", "--locks-per-section", "2", "--keys", "9"}),
       {"--deadlock-timeout", "--lock-order drawn"}},
      {"CleanWithoutARun",
       {"clean", "--redis", "redis://127.0.0.1:1"},
       {"clean requires --run ID"}},
      {"CleanOfAPattern", {"clean", "--run", "*"}, {"--run", "\"*\" is not the id of a run"}},
      {"CleanOfAllRuns", {"clean", "--run", ""}, {"--run"}},
      {"CleanWithoutServers",
       {"clean", "--run", "20261121T012530Z-4f3a9c"},
       {"nothing to clean", "--redis URL"}},
  };
}

std::vector<Malformed> malformed_servers() {
  const std::string nowhere = fmt::format("127.0.0.1:{}", test::closed_port());
  return {
      with_secret("PasswordInAnArgument", run_with({"--redis", "redis://:hunter2@localhost"}),
                  {"--redis @FILE", "LOCKBENCH_REDIS", "--config"}),
      with_secret("PasswordInAnArgumentWithoutAFile",
                  {"doctor", "--redis=redis://:hunter2@localhost"},
                  {"--redis @FILE", "LOCKBENCH_REDIS"}),
      with_secret("UrlScheme", run_with({"--redis", "@CONFIG"}), {"--redis"},
                  "http://ann:hunter2@localhost"),
      {"UnreachableSocket",
       run_with({"--redis", "unix:///no/such/socket", "--out", "/dev/null"}),
       {"--redis", "/no/such/socket"}},
      with_secret("PostgresUnreachable",
                  {"run", "--postgres", "@CONFIG", "--out", "/dev/null", "postgres-lease"},
                  {"--postgres"}, "postgresql://ann:hunter2@" + nowhere + "/x"),
      with_secret("PostgresDsnUnreachable",
                  {"run", "--postgres", "@CONFIG", "--out", "/dev/null", "postgres-*"},
                  {"--postgres"}, "host=127.0.0.1 port=1 password=hunter2"),
      with_secret("PostgresUrl", {"run", "--postgres", "hunter2", "none"}, {"--postgres"}),
      with_secret("PostgresPassword", {"run", "--postgres", "@CONFIG", "none"}, {"--postgres"},
                  "postgresql://ann:x/hunter2@127.0.0.1:1/x"),
      {"MemcachedUnreachable",
       {"run", "--memcached", nowhere, "--out", "/dev/null", "memcached-add"},
       {"--memcached"}},
      with_secret("MemcachedUrl", {"run", "--memcached", "@CONFIG", "none"}, {"--memcached"},
                  "memcached://me:hunter2@host:99999"),
      with_secret("NatsUnreachable", {"run", "--nats", "@CONFIG", "--out", "/dev/null", "nats-kv"},
                  {"--nats"}, "nats://ann:hunter2@" + nowhere),
      with_secret("ZookeeperUnreachable",
                  {"run", "--zookeeper", "@CONFIG", "--out", "/dev/null", "zookeeper"},
                  {"--zookeeper"}, "zk://ann:hunter2@" + nowhere),
      with_secret("ZookeeperPassword", {"run", "--zookeeper", "@CONFIG", "none"}, {"--zookeeper"},
                  "zk://ann:x/hunter2@127.0.0.1:1"),
      with_secret("EtcdUnreachable", {"run", "--etcd", "@CONFIG", "--out", "/dev/null", "etcd"},
                  {"--etcd"}, "etcd://ann:hunter2@" + nowhere),
      with_secret("EtcdUser", {"run", "--etcd", "etcd://hunter2@127.0.0.1:1", "none"}, {"--etcd"}),
  };
}

std::vector<Malformed> malformed_files() {
  return {
      with_secret("ConfigSecret", run_with({"--config", "CONFIG"}), {"CONFIG", "redis"},
                  "redis = \"redis://:hunter2@localhost:x\"\n"),
      {"ConfigSyntaxOfASecret",
       run_with({"--config", "CONFIG"}),
       {"CONFIG", "line 1"},
       "redis = 99999999999999999999\n",
       "999999"},
      {"SecretsMissing", run_with({"--redis", "@no.secret"}), {"--redis", "no.secret"}},
      {"SecretsEmpty", run_with({"--redis", "@CONFIG"}), {"--redis", "CONFIG", "empty"}, "\n"},
      with_secret("SecretOfTheWrongForm", run_with({"--redis", "@CONFIG"}),
                  {"--redis", "not a Redis URL"}, "hunter2"),
      with_secret("SecretsOfSeveralServers", run_with({"--postgres", "@CONFIG"}),
                  {"--postgres", "2 lines"}, "host=a password=hunter2\nhost=b password=hunter2\n"),
      {"HistoryIsNotTheResult",
       run_with({"--history", "h.edn", "--out", "h.edn"}),
       {"--history and --out", "both are h.edn"}},
      {"HistoryIsNotTheReport",
       run_with({"--history", "h.edn", "--report", "./h.edn", "--out", "/dev/null"}),
       {"--history and --report", "both are ./h.edn"}},
      {"HistoryIsNotTheEvents",
       run_with({"--history", "h.jsonl", "--events", "h.jsonl", "--out", "/dev/null"}),
       {"--history and --events", "both are h.jsonl"}},
      {"ReportIsNotTheEvents",
       run_with({"--report", "x", "--events", "x", "--out", "/dev/null"}),
       {"--events and --report", "both are x"}},
      {"OutBelowADevice", run_with({"--out", "/dev/null/r.json"}), {"--out", "/dev/null"}},
      {"EventsAreNotTheResult",
       run_with({"--events", "-", "--out", "-"}),
       {"--events and --out", "both are -"}},
      {"OutIsAFolder", run_with({"--out", "."}), {"--out"}},
      {"HdrBelowADevice",
       {"run", "none", "--out", "/dev/null", "--hdr", "/dev/null/x"},
       {"lockbench: --hdr: "}},
  };
}

std::vector<Malformed> all_malformed() {
  std::vector<Malformed> all = malformed_options();
  for (const auto& more : {malformed_experiments(), malformed_simulations(), malformed_workloads(),
                           malformed_servers(), malformed_files()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// Whether it names servers of a store that this build leaves out.
bool cannot_run(const Malformed& malformed) {
  return std::any_of(malformed.arguments.begin(), malformed.arguments.end(), [](const auto& word) {
    return word.starts_with("--") && left_out(word.substr(2));
  });
}

class UsageErrors : public testing::TestWithParam<Malformed> {};

TEST_P(UsageErrors, AreOneLineThatNamesTheCulprit) {
  Malformed given = GetParam();
  if (cannot_run(given)) GTEST_SKIP() << "its store is not built";
  const TemporaryFile config("usage.toml", given.config);
  for (std::string& argument : given.arguments) {
    if (argument.ends_with("CONFIG")) argument.replace(argument.size() - 6, 6, config.path());
  }
  const Ran result = ran(given.arguments);
  expect_refused(result, Not(HasSubstr(given.secret)));
  for (const std::string& words : given.said) {
    EXPECT_THAT(result.err, HasSubstr(words == "CONFIG" ? config.path() : words));
  }
}

INSTANTIATE_TEST_SUITE_P(All, UsageErrors, testing::ValuesIn(all_malformed()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lockbench::cli
