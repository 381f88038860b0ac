#include <fmt/format.h>

#include <chrono>
#include <map>
#include <ostream>

#include "tests/unit/cli/fixtures.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Options, DefaultsAreThoseOfAWorkload) {
  const auto options = parse_run({});
  ASSERT_TRUE(options);
  const Workload defaults;
  EXPECT_EQ(options->workload.clients, defaults.clients);
  EXPECT_EQ(options->workload.duration, defaults.duration);
  EXPECT_FALSE(options->workload.rate);
  EXPECT_TRUE(options->strategies.empty());
  EXPECT_EQ(options->format, Format::table);
  EXPECT_FALSE(options->quiet || options->strict);
}

TEST(Options, EveryOptionOfTheLoadReachesIt) {
  const auto options = parse_run({"--clients",  "64",        "--keys",
                                  "1000",       "--hold",    "2ms",
                                  "--think",    "exp(1ms)",  "--rate",
                                  "1500.5",     "--arrival", "constant",
                                  "--duration", "10s",       "--iterations",
                                  "5000",       "--warmup",  "0",
                                  "--ttl",      "1500ms",    "--acquire-timeout",
                                  "0s",         "--wait",    "backoff:1ms..50ms",
                                  "--resource", "redis",     "--repeat",
                                  "3",          "--seed",    "42",
                                  "--key-skew", "0.99",      "--store-timeout",
                                  "250ms",      "--rtt",     "5ms"});
  ASSERT_TRUE(options) << options.error().message;
  const Workload& load = options->workload;
  EXPECT_EQ(load.clients, 64);
  EXPECT_EQ(load.keys, 1000);
  EXPECT_FALSE(load.key_per_client);
  EXPECT_EQ(load.key_skew, 0.99);
  EXPECT_EQ(load.hold.to_string(), "2ms");
  EXPECT_EQ(load.think.to_string(), "exp(1ms)");
  EXPECT_EQ(load.rate, 1500.5);
  EXPECT_EQ(load.arrival, Arrival::constant);
  EXPECT_EQ(load.duration, 10s);
  EXPECT_EQ(load.iterations, 5000U);
  EXPECT_EQ(load.warmup, 0s);
  EXPECT_EQ(load.ttl, 1500ms);
  EXPECT_EQ(load.acquire_timeout, 0s);
  EXPECT_EQ(load.strategy.wait, WaitPolicy::backoff(1ms, 50ms));
  EXPECT_EQ(load.strategy.command_timeout, 250ms);
  EXPECT_EQ(load.rtt, 5ms);
  EXPECT_EQ(load.resource, Resource::redis);
  EXPECT_EQ(load.repeat, 3);
  EXPECT_EQ(load.seed, 42U);
}

TEST(Options, RenewalAndNotificationReachIt) {
  using Kind = RenewPolicy::Kind;
  const auto strategy = [](const std::vector<std::string>& args) {
    return parse_run(args).value().workload.strategy;
  };
  EXPECT_FALSE(strategy({}).renew);
  EXPECT_FALSE(strategy({}).renew_cap);
  EXPECT_EQ(strategy({"--renew", "off"}).renew, RenewPolicy{Kind::off});
  EXPECT_EQ(strategy({"--renew", "auto"}).renew, RenewPolicy{Kind::automatic});
  EXPECT_EQ(strategy({"--renew", "250ms"}).renew, (RenewPolicy{Kind::every, 250ms}));
  EXPECT_EQ(strategy({"--renew-cap", "1m"}).renew_cap, Duration(1min));
  EXPECT_FALSE(strategy({}).node_timeout);
  EXPECT_EQ(strategy({"--node-timeout", "20ms"}).node_timeout, Duration(20ms));
  EXPECT_EQ(strategy({"--wait", "notify"}).wait->kind, WaitKind::notify);
  EXPECT_EQ(parse_run({"--resource", "redis-fenced"})->workload.resource, Resource::redis_fenced);
  EXPECT_TRUE(parse_run({"--resource", "redis-fenced", "--counter-redis", "redis://h"}));
}

TEST(WorkloadRecord, KeepsHowLeasesAreRenewed) {
  const auto record = [](const std::vector<std::string>& args) {
    return workload_record(parse_run(args).value());
  };
  EXPECT_EQ(record({}).at("renew"), results::OptionValue(nullptr));
  EXPECT_EQ(record({}).at("renew_cap"), results::OptionValue(nullptr));
  EXPECT_EQ(record({"--renew", "auto"}).at("renew"), results::OptionValue(std::string("auto")));
  EXPECT_EQ(record({"--renew", "off"}).at("renew"), results::OptionValue(std::string("off")));
  EXPECT_EQ(record({"--renew", "250ms"}).at("renew"), results::OptionValue(0.25));
  EXPECT_EQ(record({}).at("nodes"), results::OptionValue(std::int64_t{5}));
  EXPECT_EQ(record({"--nodes", "7"}).at("nodes"), results::OptionValue(std::int64_t{7}));
  EXPECT_EQ(record({}).at("node_timeout"), results::OptionValue(nullptr));
  EXPECT_EQ(record({"--node-timeout", "20ms"}).at("node_timeout"), results::OptionValue(0.02));
  EXPECT_EQ(record({"--renew-cap", "2m"}).at("renew_cap"), results::OptionValue(120.0));
  EXPECT_EQ(record({"--resource", "redis-fenced"}).at("resource"),
            results::OptionValue(std::string("redis-fenced")));
  EXPECT_EQ(record({"--wait", "notify"}).at("wait"), results::OptionValue(std::string("notify")));
}

TEST(Options, ReplicasReachIt) {
  const auto defaults = parse_run({}).value();
  EXPECT_EQ(defaults.replicas, 2);
  EXPECT_FALSE(defaults.workload.strategy.wait_replicas);
  EXPECT_EQ(defaults.workload.strategy.wait_timeout, 100ms);
  const auto given =
      parse_run({"--replicas", "5", "--wait-replicas", "3", "--wait-timeout", "20ms"}).value();
  EXPECT_EQ(given.replicas, 5);
  EXPECT_EQ(given.workload.strategy.wait_replicas, 3);
  EXPECT_EQ(given.workload.strategy.wait_timeout, 20ms);
  EXPECT_FALSE(parse_run({"--wait-replicas", "all"})->workload.strategy.wait_replicas);
  EXPECT_EQ(workload_record(given).at("wait_replicas"), results::OptionValue(std::int64_t{3}));
  EXPECT_EQ(workload_record(defaults).at("wait_replicas"),
            results::OptionValue(std::string("all")));
  EXPECT_EQ(workload_record(given).at("wait_timeout"), results::OptionValue(0.02));
}

TEST(Options, EveryOptionOfDeploymentAndOutputReachesIt) {
  const auto options = parse_run(
      {"redis-setnx", "--redis", "redis://a:1", "--redis=redis://b:2", "redis-*", "--counter-redis",
       "redis://c:3", "--resource", "redis", "--threshold", "acquire.p99<5ms", "--threshold",
       "audit.lost_updates==0", "--out", "x.json", "--format", "csv", "--quiet", "--strict"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_THAT(options->strategies, testing::ElementsAre("redis-setnx", "redis-*"));
  EXPECT_THAT(options->redis, testing::ElementsAre("redis://a:1", "redis://b:2"));
  EXPECT_EQ(options->counter_redis, "redis://c:3");
  ASSERT_EQ(options->thresholds.size(), 2U);
  EXPECT_EQ(options->thresholds[1].figure, "audit.lost_updates");
  EXPECT_EQ(options->out, "x.json");
  EXPECT_EQ(options->format, Format::csv);
  EXPECT_TRUE(options->quiet && options->strict);
}

TEST(Options, KeysPerClient) {
  const auto options = parse_run({"--keys", "per-client"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->workload.key_per_client);
}

TEST(Options, BoundsThemselvesAreAllowed) {
  for (const auto& [option, value] :
       std::vector<std::pair<std::string, std::string>>{{"--clients", "1"},
                                                        {"--clients", "100000"},
                                                        {"--keys", "1"},
                                                        {"--keys", "10000000"},
                                                        {"--ttl", "1ms"},
                                                        {"--iterations", "1"},
                                                        {"--seed", "0"},
                                                        {"--seed", "9223372036854775807"},
                                                        {"--key-skew", "0"},
                                                        {"--hold", "1h"},
                                                        {"--repeat", "1"},
                                                        {"--rate", "0.001"}}) {
    EXPECT_EQ(error_of({option, value}), "accepted") << option << ' ' << value;
  }
}

struct Refused {
  std::string option, value;
  /// What the message must say is allowed.
  std::string allowed;

  friend std::ostream& operator<<(std::ostream& out, const Refused& refused) {
    return out << refused.option << " \"" << refused.value << '"';
  }
};

class RefusedValue : public testing::TestWithParam<Refused> {};

TEST_P(RefusedValue, IsNamedWithWhatIsAllowed) {
  const auto& [option, value, allowed] = GetParam();
  ASSERT_EQ(value.find(allowed), std::string::npos) << "the value says it by itself";
  for (const auto& args :
       {std::vector{option, value}, std::vector{fmt::format("{}={}", option, value)}}) {
    const std::string error = error_of(args);
    EXPECT_THAT(error, StartsWith(option + ": "));
    EXPECT_THAT(error, HasSubstr(value));
    EXPECT_THAT(error, HasSubstr(allowed));
    EXPECT_THAT(error, Not(HasSubstr("\n")));
  }
}

std::vector<Refused> refused_values() {
  std::vector<Refused> refused;
  const auto refuse = [&](const std::string& option, const std::string& allowed,
                          const std::vector<std::string>& values) {
    for (const std::string& value : values) refused.push_back({option, value, allowed});
  };
  const std::string duration = "ns, us, ms, s, m or h, such as 250us";
  const std::string distribution = "exp(2ms), or uniform(1ms,3ms)";
  refuse("--clients", "1 to 100000",
         {"0", "100001", "-1", "abc", "1.5", "99999999999999999999", "8x", " 8", "0x10", "+8"});
  refuse("--keys", "1 to 10000000 nor per-client",
         {"0", "10000001", "-1", "per-clinet", "1e3", "nan"});
  refuse("--key-skew", "0 to 10", {"-0.1", "nan", "inf", "1e999", "10.1", "x"});
  refuse("--hold", "at most 1h", {"2h", "exp(61m)"});
  refuse("--hold", distribution, {"-1ms", "1", "abc", "nan", "exp(1ms", "1e30s", "5 ms x"});
  refuse("--hold", "the first must not be above the second", {"uniform(3ms,1ms)"});
  refuse("--think", "at most 1h", {"2h"});
  refuse("--think", distribution, {"-1s", "inf"});
  refuse("--think", "takes two durations: uniform(1ms,3ms)", {"uniform(1ms)"});
  refuse("--think", duration, {"exp()"});
  refuse("--rate", "0.001 to 10000000",
         {"0", "-1", "nan", "inf", "-inf", "1e8", "1e-9", "1e999", "5/s"});
  refuse("--arrival", "constant, poisson", {"Poisson", "uniform"});
  refuse("--duration", "1ms to 168h", {"0s", "169h"});
  refuse("--duration", duration, {"3", "-3s", "3 seconds", "infs", "nans"});
  refuse("--iterations", "1 to 1000000000000", {"0", "-5", "1e6", "18446744073709551616"});
  refuse("--warmup", "0s to 1h", {"61m"});
  refuse("--warmup", duration, {"5", "-1s"});
  refuse("--ttl", "1ms to 24h", {"0s", "999us", "25h"});
  refuse("--ttl", duration, {"10"});
  refuse("--acquire-timeout", "0s to 24h", {"25h"});
  refuse("--acquire-timeout", duration, {"-1s", "30"});
  refuse("--renew", "neither off nor auto nor a duration", {"on", "5", "-1s", "auto:1s"});
  refuse("--renew", "1ms to 24h", {"0s", "25h"});
  refuse("--renew-cap", "1ms to 168h", {"0s", "169h"});
  refuse("--renew-cap", duration, {"none"});
  refuse("--nodes", "whole number from 1 to 15", {"0", "16", "-1", "five", "3.5"});
  refuse("--node-timeout", "100us to 1h", {"0s", "2h"});
  refuse("--node-timeout", duration, {"50"});
  refuse("--replicas", "0 to 16", {"17", "-1", "two"});
  refuse("--wait-replicas", "1 to 16 nor all", {"0", "17", "none", "1.5"});
  refuse("--wait-timeout", "1ms to 1h", {"0s", "999us", "2h"});
  refuse("--wait-timeout", duration, {"100"});
  refuse("--wait", "poll:INTERVAL, backoff:MIN..MAX",
         {"poll", "poll:", "poll:-1ms", "backoff:1ms", "spin"});
  refuse("--wait", "(0 < MIN <= MAX)", {"backoff:5ms..1ms"});
  refuse("--wait", "0s to 1h", {"poll:2h", "backoff:1ms..2h"});
  refuse("--resource", "memory, redis, redis-fenced", {"disk"});
  refuse("--repeat", "1 to 1000", {"0", "1001", "-1"});
  refuse("--seed", "0 to 9223372036854775807", {"-1", "9223372036854775808", "0.5"});
  refuse("--store-timeout", "1ms to 1h", {"0s", "2h"});
  refuse("--store-timeout", duration, {"100"});
  refuse("--rtt", "0s to 1h", {"2h"});
  refuse("--rtt", duration, {"-1ms", "100"});
  refuse("--threshold", "close ones: acquire.p90", {"acquire.p98<5ms"});
  refuse("--threshold", "one of < <= > >= == !=", {"acquire.p99"});
  refuse("--threshold", "is not a number", {"acquire.p99<"});
  refuse("--threshold", "close ones: ", {"<5ms"});
  refuse("--shared-share", "from 0 to 1", {"-0.1", "1.1", "half"});
  refuse("--lock-delay", "0s to 1h", {"2h"});
  refuse("--format", "table, json, csv, markdown", {"xml", "Table"});
  return refused;
}

INSTANTIATE_TEST_SUITE_P(All, RefusedValue, testing::ValuesIn(refused_values()));

/// What must be said where an option has no value.
const std::map<std::string, std::string>& wanted_values() {
  static const std::string duration = "such as 250us", url = "allowed: redis://";
  static const std::string path = "the path of a file is wanted";
  static const std::map<std::string, std::string> wanted = {
      {"clients", "1 to 100000"},
      {"keys", "per-client"},
      {"key-skew", "0 to 10"},
      {"hold", "uniform(1ms,3ms)"},
      {"think", "uniform(1ms,3ms)"},
      {"rate", "0.001 to 10000000"},
      {"arrival", "constant, poisson"},
      {"duration", duration},
      {"iterations", "1 to"},
      {"warmup", duration},
      {"ttl", duration},
      {"acquire-timeout", duration},
      {"wait", "backoff:MIN..MAX"},
      {"renew", "off nor auto"},
      {"renew-cap", duration},
      {"replicas", "0 to 16"},
      {"wait-replicas", "1 to 16 nor all"},
      {"wait-timeout", duration},
      {"nodes", "whole number from"},
      {"node-timeout", duration},
      {"shared-share", "0 to 1"},
      {"lock-delay", duration},
      {"resource", "memory, redis"},
      {"repeat", "1 to 1000"},
      {"seed", "0 to"},
      {"redis", url},
      {"counter-redis", url},
      {"memcached", "HOST:PORT"},
      {"etcd", "etcd://[user:password@]host"},
      {"postgres", "postgresql://[user[:password]@]host"},
      {"zookeeper", "[zk://[user:password@]]host"},
      {"store-timeout", duration},
      {"rtt", duration},
      {"threshold", "one of < <= > >= == !="},
      {"out", path},
      {"hdr", path},
      {"metrics-listen", "127.0.0.1:9464"},
      {"linger", duration},
      {"push", "http://[user[:password]@]host"},
      {"format", "table, json, csv, markdown"},
      {"config", path},
  };
  return wanted;
}

TEST(Options, AMissingValueIsNamedWithWhatIsAllowed) {
  for (const Option& option : run_options()) {
    if (option.positional || option.type == Option::Type::flag) continue;
    const std::string& wanted = wanted_values().at(std::string(option.name));
    const std::string name = "--" + std::string(option.name);
    for (const auto& args : std::vector<std::vector<std::string>>{
             {name}, {name, ""}, {name + "="}, {name, "--quiet"}, {name, "--", "none"}}) {
      EXPECT_THAT(error_of(args), AllOf(StartsWith(name + " needs a value: "), HasSubstr(wanted)));
    }
  }
}

TEST(Options, AValueMayLookLikeAnUnknownOption) {
  EXPECT_EQ(parse_run({"--out", "-x.json"})->out, "-x.json");
  EXPECT_EQ(parse_run({"--out", "--x=--quiet"})->out, "--x=--quiet");
}

TEST(Options, FlagsTakeNoOtherValue) {
  EXPECT_THAT(error_of({"--quiet=maybe"}), StartsWith("--quiet"));
  EXPECT_EQ(error_of({"--quiet", "--quiet"}), "accepted");
}

TEST(Options, AnOptionOfOneValueIsGivenOnce) {
  EXPECT_EQ(error_of({"--clients", "1", "--clients", "2"}),
            "--clients is given 2 times: once is allowed");
}

TEST(Options, UnknownOptionsAreNamedWithCloseOnes) {
  EXPECT_THAT(error_of({"--clinets", "5"}),
              HasSubstr("unknown option --clinets: did you mean --clients"));
  EXPECT_THAT(error_of({"-x"}), HasSubstr("unknown option -x"));
  // Announced for later, and unknown until then.
  EXPECT_THAT(error_of({"--fault", "1"}), StartsWith("unknown option --fault"));
}

TEST(Options, OnesThatNeedEachOther) {
  EXPECT_THAT(error_of({"--arrival", "constant"}), HasSubstr("needs --rate"));
  EXPECT_THAT(error_of({"--counter-redis", "redis://h"}), HasSubstr("needs --resource redis"));
  EXPECT_THAT(error_of({"--keys", "per-client", "--key-skew", "1"}), HasSubstr("--keys N"));
  EXPECT_THAT(error_of({"--rtt", "1ms", "--redis", "redis://h"}), HasSubstr("--redis"));
  EXPECT_EQ(error_of({"--rtt", "0s", "--redis", "redis://h"}), "accepted");
  EXPECT_THAT(error_of({"--rtt", "5s"}), HasSubstr("shorter than --store-timeout (3s)"));
}

TEST(Options, ACountedRunIsNotCutAfterTheDefaultDuration) {
  EXPECT_EQ(parse_run({"--iterations", "9"})->workload.duration, kLongestCountedRun);
  EXPECT_EQ(parse_run({"--iterations", "9", "--duration", "2s"})->workload.duration, 2s);
}

TEST(Options, HelpKnowsEveryOption) {
  const std::string text = help(run_command());
  for (const Option& option : run_options()) {
    if (!option.positional) {
      EXPECT_THAT(text, HasSubstr("--" + std::string(option.name)));
    }
    EXPECT_THAT(text, HasSubstr(option.help.substr(0, 12)));
  }
}

TEST(Options, OtherCommandsTakeTheirOwnOnly) {
  const auto list = parse(list_command(), std::vector<std::string>{"--format", "json"});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->format, Format::json);
  EXPECT_FALSE(parse(list_command(), std::vector<std::string>{"--format", "csv"}));
  EXPECT_FALSE(parse(list_command(), std::vector<std::string>{"--clients", "1"}));
  EXPECT_FALSE(parse(list_command(), std::vector<std::string>{"redis-setnx"}));
  EXPECT_TRUE(parse(doctor_command(), std::vector<std::string>{"--redis", "redis://h"}));
  EXPECT_FALSE(parse(doctor_command(), std::vector<std::string>{"--hold", "1ms"}));
}

TEST(QuorumCommand, TakesAListOfNodes) {
  const auto quorum = [](const std::vector<std::string>& args) {
    return parse(quorum_command(), args);
  };
  EXPECT_TRUE(quorum({})->quorum.nodes.empty());
  EXPECT_EQ(quorum({})->quorum.duration, 1s);
  const auto options =
      quorum({"--nodes",    "5",  "--nodes",        "3",   "--nodes", "5",  "--duration", "2s",
              "--clients",  "20", "--slow",         "5ms", "--ttl",   "1s", "--rtt",      "1ms",
              "--replicas", "1",  "--node-timeout", "20ms"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_THAT(options->quorum.nodes, testing::ElementsAre(5, 3)) << "each once";
  EXPECT_EQ(options->quorum.duration, 2s);
  EXPECT_EQ(options->quorum.slow, 5ms);
  EXPECT_EQ(options->workload.clients, 20);
  EXPECT_EQ(options->workload.ttl, 1s);
  EXPECT_EQ(options->workload.rtt, 1ms);
  EXPECT_EQ(options->replicas, 1);
  EXPECT_EQ(options->workload.strategy.node_timeout, Duration(20ms));
}

TEST(QuorumCommand, NamesWhatIsWrong) {
  const auto error = [](const std::vector<std::string>& args) {
    const auto options = parse(quorum_command(), args);
    return options ? "accepted" : options.error().message;
  };
  EXPECT_THAT(error({"--nodes", "0"}), HasSubstr("from 1 to 15"));
  EXPECT_THAT(error({"--nodes", "16"}), HasSubstr("from 1 to 15"));
  EXPECT_THAT(error({"--clients", "0"}), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(error({"--slow", "0s"}), HasSubstr("1ms to 1h"));
  EXPECT_THAT(error({"--redis", "redis://h"}), HasSubstr("--redis")) << "it harms its own servers";
  EXPECT_THAT(error({"redlock"}), HasSubstr("redlock"));
}

TEST(Secrets, NeverStandInAMessage) {
  const std::string secret = "hunter2";
  const std::vector<std::vector<std::string>> mistakes = {
      {"--redis", "redis://:" + secret + "@host:99999"},
      {"--redis", "redis://u:" + secret + "@:0/x"},
      {"--redis", "rediss://u:" + secret + "@host"},
      {"--redis", secret},
      {"--counter-redis", "redis://:" + secret + "@host/notanumber"},
      {"--redsi=redis://:" + secret + "@host"},
      {"--redsi", "redis://:" + secret + "@host"}};
  for (const auto& args : mistakes) EXPECT_THAT(error_of(args), Not(HasSubstr(secret)));
}

TEST(WorkloadRecord, KeepsTheDatabase) {
  const auto options = parse_run({"--redis", "redis://host:1/3", "--redis", "unix:///run/r?db=2",
                                  "--redis", "redis://host/0"});
  ASSERT_TRUE(options) << options.error().message;
  using List = std::vector<std::string>;
  EXPECT_EQ(std::get<List>(workload_record(*options).at("redis")),
            (List{"host:1/3", "unix:/run/r?db=2", "host:6379"}));
}

TEST(WorkloadRecord, HasEveryOptionAndNoSecret) {
  const auto options = parse_run({"--redis",
                                  "redis://ann:hunter2@host:1/3",
                                  "--resource",
                                  "redis",
                                  "--counter-redis",
                                  "redis://:hunter2@other",
                                  "--ttl",
                                  "1500ms",
                                  "--hold",
                                  "exp(2ms)",
                                  "--rate",
                                  "10",
                                  "redis-*",
                                  "--postgres",
                                  "postgresql://ann:hunter2@db/app",
                                  "--memcached",
                                  "cache",
                                  "--zookeeper",
                                  "zk://ann:hunter2@a,b:1/app",
                                  "--etcd",
                                  "etcd://ann:hunter2@db,db2"});
  ASSERT_TRUE(options) << options.error().message;
  const auto record = workload_record(*options);
  EXPECT_EQ(record.size(), run_options().size());
  using List = std::vector<std::string>;
  EXPECT_EQ(std::get<double>(record.at("ttl")), 1.5);
  EXPECT_EQ(std::get<std::string>(record.at("hold")), "exp(2ms)");
  EXPECT_EQ(std::get<double>(record.at("think")), 0);
  EXPECT_EQ(std::get<double>(record.at("rate")), 10);
  EXPECT_EQ(std::get<std::int64_t>(record.at("clients")), 8);
  EXPECT_EQ(std::get<double>(record.at("acquire_timeout")), 30);
  EXPECT_EQ(record.at("wait"), results::OptionValue(nullptr));
  EXPECT_EQ(record.at("iterations"), results::OptionValue(nullptr));
  EXPECT_EQ(std::get<List>(record.at("strategies")), List{"redis-*"});
  EXPECT_EQ(std::get<List>(record.at("redis")), List{"host:1/3"});
  EXPECT_EQ(std::get<std::string>(record.at("counter_redis")), "other:6379");
  EXPECT_EQ(std::get<std::string>(record.at("postgres")), "db:5432");
  EXPECT_EQ(std::get<std::string>(record.at("memcached")), "cache:11211");
  EXPECT_EQ(std::get<std::string>(record.at("zookeeper")), "a:2181,b:1/app");
  EXPECT_EQ(std::get<std::string>(record.at("etcd")), "db:2379,db2:2379");
}

}  // namespace
}  // namespace lockbench
