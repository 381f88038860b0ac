#include <fmt/format.h>

#include <chrono>
#include <map>

#include "cli/commands/measurement.h"
#include "results/file/loads.h"
#include "strategies/store.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

TEST(Options, RenewalIsOffAutomaticOrEachSoOften) {
  using Kind = RenewPolicy::Kind;
  const auto strategy = [](const std::vector<std::string>& args) {
    return parse_run(args).value().workload.strategy;
  };
  EXPECT_EQ(strategy({"--renew", "off"}).renew, RenewPolicy{Kind::off});
  EXPECT_EQ(strategy({"--renew", "auto"}).renew, RenewPolicy{Kind::automatic});
  EXPECT_EQ(strategy({"--renew", "250ms"}).renew, (RenewPolicy{Kind::every, 250ms}));
  const auto recorded = [](const std::string& renew) {
    return workload_record(parse_run({"--renew", renew}).value()).at("renew");
  };
  EXPECT_EQ(recorded("auto"), results::OptionValue(std::string("auto")));
  EXPECT_EQ(recorded("250ms"), results::OptionValue(0.25));
}

TEST(Options, AllReplicasOfAPrivateServerAreWaitedFor) {
  const auto waited_for = [](const std::vector<std::string>& args) {
    return parse_run(args)->workload.strategy.wait_replicas;
  };
  EXPECT_EQ(waited_for({}), 2);
  EXPECT_EQ(waited_for({"--replicas", "5", "--wait-replicas", "3"}), 3);
  EXPECT_EQ(waited_for({"--wait-replicas", "all", "--replicas", "4"}), 4);
  EXPECT_FALSE(waited_for({"--replicas", "0"}));
  EXPECT_FALSE(waited_for({"--redis", "redis://h"})) << "some of its replicas may be away";
  EXPECT_EQ(waited_for({"--redis", "redis://h", "--wait-replicas", "3"}), 3);
  EXPECT_EQ(workload_record(parse_run({}).value()).at("wait_replicas"),
            results::OptionValue(std::string("all")));
}

TEST(Options, SomeAreRepeatedAndNamesMayStandBetweenThem) {
  const auto options =
      parse_run({"redis-setnx", "--redis", "redis://a:1", "--redis=redis://b:2", "redis-*",
                 "--threshold", "acquire.p99<5ms", "--threshold", "audit.lost_updates==0"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->strategies, testing::ElementsAre("redis-setnx", "redis-*"));
  EXPECT_THAT(options->servers_of("redis"), testing::ElementsAre("redis://a:1", "redis://b:2"));
  ASSERT_EQ(options->thresholds.size(), 2U);
  EXPECT_EQ(options->thresholds[1].figure, "audit.lost_updates");
}

TEST(Options, BoundsThemselvesAreAllowed) {
  for (const char* given :
       {"--clients=1", "--clients=100000", "--keys=1", "--keys=10000000", "--ttl=1ms", "--warmup=0",
        "--acquire-timeout=0s", "--iterations=1", "--seed=0", "--seed=9223372036854775807",
        "--key-skew=0", "--hold=1h", "--repeat=1", "--rate=0.001"}) {
    EXPECT_EQ(error_of({given}), "accepted") << given;
  }
}

TEST(Options, AMissingValueIsNamedWithWhatIsAllowed) {
  const OptionList options = run_options();
  for (const Option& option : options.all()) {
    if (option.positional || option.flag) continue;
    const auto taken = option.parse({""});
    const std::string wanted = taken ? option.help : taken.error();
    const std::string name = "--" + option.name;
    for (const auto& args : std::vector<std::vector<std::string>>{
             {name}, {name, ""}, {name + "="}, {name, "--quiet"}, {name, "--", "none"}}) {
      EXPECT_EQ(error_of(args), fmt::format("{} needs a value: {}", name, wanted));
    }
  }
}

TEST(Options, HowOftenTheyAreGivenAndWithWhat) {
  EXPECT_THAT(error_of({"--quiet=maybe"}), StartsWith("--quiet"));
  EXPECT_EQ(error_of({"--quiet", "--quiet"}), "accepted");
  EXPECT_EQ(error_of({"--clients", "1", "--clients", "2"}),
            "--clients is given 2 times, but only once is allowed");
  EXPECT_EQ(parse_run({"--out", "-x.json"})->output.out, "-x.json");
  EXPECT_EQ(parse_run({"--out", "--x=--quiet"})->output.out, "--x=--quiet");
}

TEST(Options, OnesThatNeedEachOther) {
  const std::string hot_set = "--hot-set=share=50%,keys=10";
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
      {{"--arrival=constant"}, "requires --rate"},
      {{"--work-connection"}, "requires --pool"},
      {{"--counter-redis=redis://h"}, "requires --resource redis"},
      {{"--keys=per-client", "--key-skew=1"}, "--keys N"},
      {{"--tls", "--postgres=host=h"}, "--tls cannot be combined with --postgres"},
      {{"--tls", "--resource=redis", "--counter-redis=redis://h"}, "--counter-redis"},
      {{"--rtt=5s"}, "shorter than --store-timeout (3s)"},
      {{"--renew-deadline=10s"}, "must be shorter than --ttl (10s)"},
      {{hot_set}, "requires --keys N with N above its 10"},
      {{hot_set, "--keys=10"}, "requires --keys N"},
      {{hot_set, "--keys=per-client"}, "--keys N"},
      {{hot_set, "--keys=99", "--key-skew=1"}, "--key-skew"}};
  for (const auto& [args, said] : refused) {
    if (left_out("postgres") && said.find("postgres") != std::string::npos) continue;
    EXPECT_THAT(error_of(args), HasSubstr(said));
  }
  EXPECT_EQ(error_of({hot_set, "--keys=11"}), "accepted");
  EXPECT_TRUE(parse_run({"--tls"})->tls);
}

TEST(Options, ADelayIsRefusedForTheUsersOwnServersOfAnyStore) {
  const std::map<std::string, std::string> urls = {{"redis", "redis://h"}, {"memcached", "h:11211"},
                                                   {"nats", "h:4222"},     {"zookeeper", "h:2181"},
                                                   {"etcd", "h:2379"},     {"mysql", "mysql://h"},
                                                   {"postgres", "host=h"}};
  for (const StoreKind* kind : store_kinds()) {
    const std::string name(kind->name);
    if (left_out(name)) continue;
    EXPECT_EQ(error_of({"--rtt", "1ms", "--" + name, urls.at(name)}),
              "--rtt cannot be combined with --" + name + ": it delays private servers only");
    EXPECT_EQ(error_of({"--rtt", "0s", "--" + name, urls.at(name)}), "accepted");
  }
}

TEST(Options, ATraceReachesIt) {
  const TemporaryFile file("trace.csv", "1,0,1,7,2\n2,0,1,41,1\n");
  const auto options = parse_run({"--trace", file.path()});
  ASSERT_TRUE(options) << options.error();
  const loadgen::Workload& load = options->workload;
  EXPECT_EQ(load.trace.value().transactions, 2U);
  EXPECT_EQ(load.keys, 42);
  EXPECT_EQ(load.duration, kMaxDurationOfIterations);
  EXPECT_EQ(workload_record(*options).at("trace"), results::OptionValue(file.path()));
  for (const std::string given :
       {"--keys=100", "--key-skew=0", "--shared-share=0.5", "--locks-per-section=2"}) {
    EXPECT_THAT(error_of({"--trace", file.path(), given}),
                StartsWith(given.substr(0, given.find('=')) + " cannot be combined with --trace"));
  }
  EXPECT_THAT(error_of({"--trace", file.path(), "--load", "demand"}), HasSubstr("requires --rate"));
  EXPECT_EQ(error_of({"--trace", file.path(), "--load", "demand", "--rate", "9"}), "accepted");
  EXPECT_EQ(error_of({"--trace", file.path(), "--lock-order", "drawn"}), "accepted");
}

TEST(Options, IterationsReplaceTheDefaultDuration) {
  EXPECT_EQ(parse_run({"--iterations", "9"})->workload.duration, kMaxDurationOfIterations);
  EXPECT_EQ(parse_run({"--iterations", "9", "--duration", "2s"})->workload.duration, 2s);
}

TEST(Options, TheCommandIsKeptWithoutWhereOutputWent) {
  const TemporaryFile file("run.toml", "clients = 3\n");
  const auto words = [](const std::vector<std::string>& args) {
    return parse_run(args)->output.command;
  };
  EXPECT_THAT(words({}), testing::ElementsAre("run"));
  EXPECT_THAT(words({"--ttl=3s", "--strict", "--quiet", "--out", "x.json", "redis-*", "--config",
                     file.path(), "--prefer-writers=false", "etcd"}),
              testing::ElementsAre("run", "redis-*", "etcd", "--ttl", "3s",
                                   "--prefer-writers=false", "--strict", "--config", file.path()));
}

TEST(Options, AListWithAWrongWordIsNotTakenAtAll) {
  RunOptions values;
  OptionList options = options_of(values);
  EXPECT_FALSE(options.at("load").set("alone,demand,sturated"));
  EXPECT_THAT(values.loads, testing::IsEmpty());
  EXPECT_FALSE(options.at("threshold").set("acquire.p99<5ms,nonsense"));
  EXPECT_THAT(values.thresholds, testing::IsEmpty());
  EXPECT_TRUE(options.at("load").set("alone,demand"));
  EXPECT_FALSE(options.at("load").set("saturated,x"));
  EXPECT_THAT(values.loads, SizeIs(2)) << "as before";
}

TEST(Options, TheCommandThatIsKeptSetsTheSameOptions) {
  const auto repeated = [](auto options, const std::vector<std::string>& args) {
    using Options = decltype(options);
    const auto first = parse<Options>(args);
    if (!first) return first.error();
    const std::vector<std::string>& words = first->output.command;
    if (words.front() != Options::kCommand) return words.front();
    const auto again = parse<Options>({words.begin() + 1, words.end()});
    if (!again) return again.error();
    return std::string(workload_record(*first) == workload_record(*again) ? "the same" : "another");
  };
  EXPECT_EQ(repeated(RunOptions(), {"redis-*", "etcd", "--rate=5,10", "--keys=per-client", "--hold",
                                    "exp(2ms)", "--prefer-writers", "--out", "x.json"}),
            "the same");
  EXPECT_EQ(repeated(CapacityOptions(), {"redis-queue", "--slo", "acquire.p99<20ms"}), "the same");
}

TEST(Options, HelpShowsEachWithItsDefaultAfterAnExample) {
  const std::string text = ran({"run", "--help", "all"}).out;
  EXPECT_EQ(ran({"run", "--help=all"}).out, text);
  EXPECT_THAT(text, StartsWith("Example: lockbench run "));
  const OptionList options = run_options();
  for (const Option& option : options.all()) {
    EXPECT_THAT(text, HasSubstr(option.positional ? option.value_name : "--" + option.name));
    EXPECT_THAT(text, HasSubstr(option.help.substr(0, 12)));
  }
  EXPECT_THAT(text, HasSubstr("several numbers: a sweep (default: the load's)"));
  EXPECT_THAT(text, HasSubstr("time to live of a lock (default: 10s)"));
  EXPECT_THAT(text, HasSubstr("(default: closed loop)"));
}

TEST(Options, HelpShowsTheUsualOnesFirst) {
  const std::string text = ran({"run", "--help"}).out;
  const OptionList options = run_options();
  std::size_t marked = 0;
  for (const Option& option : options.all()) {
    if (option.positional) continue;
    const std::string shown = "\n  --" + option.name + " ";
    marked += option.usual ? 1 : 0;
    EXPECT_EQ(text.find(shown) != std::string::npos, option.usual) << option.name;
  }
  EXPECT_LE(marked, 17U);
  const std::size_t positional = 1;
  EXPECT_THAT(text, HasSubstr(fmt::format("{} more options: lockbench run --help all",
                                          options.all().size() - marked - positional)));
  EXPECT_THAT(ran({"capacity", "--help"}).out, HasSubstr("\n  --slo "));
}

TEST(WorkloadRecord, LeavesToSeveralLoadsWhatEachHasOfItsOwn) {
  const auto left = [](const std::string& loads) {
    const RunOptions options = parse_run({"--load", loads, "--hold", "3ms"}).value();
    OptionRecord record = workload_record(options);
    leave_to_the_loads(options, record);
    return record;
  };
  EXPECT_EQ(left("saturated").at("clients"), results::OptionValue(std::int64_t{8}));
  EXPECT_EQ(left("saturated,demand").at("clients"), results::OptionValue(nullptr));
  EXPECT_EQ(left("saturated,demand").at("hold"), results::OptionValue(0.003));
}

TEST(WorkloadRecord, KeepsTheDatabase) {
  const auto options = parse_run({"--redis", "redis://host:1/3", "--redis", "unix:///run/r?db=2",
                                  "--redis", "redis://host/0"});
  ASSERT_TRUE(options) << options.error();
  using List = std::vector<std::string>;
  EXPECT_EQ(std::get<List>(workload_record(*options).at("redis")),
            (List{"host:1/3", "unix:/run/r?db=2", "host:6379"}));
}

/// For each backend, the option value that names a server, and its display form.
const std::map<std::string, std::pair<std::string, std::string>> named_servers = {
    {"postgres", {"postgresql://ann:hunter2@db/app", "db:5432"}},
    {"mysql", {"mysql://ann:hunter2@db", "db:3306"}},
    {"memcached", {"cache", "cache:11211"}},
    {"nats", {"nats://ann:hunter2@bus", "bus:4222"}},
    {"zookeeper", {"zk://ann:hunter2@a,b:1/app", "a:2181,b:1/app"}},
    {"etcd", {"etcd://ann:hunter2@db,db2", "db:2379,db2:2379"}}};

TEST(WorkloadRecord, ResultsThatWereOnlyJudgedOrShownOtherwiseAreComparable) {
  const auto result = [](const std::vector<std::string>& args) {
    results::Result made;
    made.workload = workload_record(parse_run(args).value());
    return made;
  };
  EXPECT_THAT(results::incompatibilities(result({}),
                                         result({"--allow-no-grants", "--strict", "--threshold",
                                                 "acquire.p99<5ms", "--quiet", "--out", "x.json"})),
              testing::IsEmpty());
  EXPECT_THAT(results::incompatibilities(result({}), result({"--ttl", "3s"})),
              testing::ElementsAre("ttl 10 and 3"));
}

TEST(WorkloadRecord, HasEveryOptionThatChangesFiguresAndNoSecret) {
  std::string text =
      "redis = [\"redis://ann:hunter2@host:1/3\"]\n"
      "counter-redis = \"redis://:hunter2@other\"\n";
  for (const auto& [backend, server] : named_servers) {
    if (left_out(backend)) continue;
    text += fmt::format("{} = \"{}\"\n", backend, server.first);
  }
  const TemporaryFile file("record.toml", text);
  const auto options = parse_run({"--config", file.path(), "--resource", "redis", "--ttl", "1500ms",
                                  "--hold", "exp(2ms)", "--rate", "10", "redis-*"});
  ASSERT_TRUE(options) << options.error();
  const auto record = workload_record(*options);
  const OptionList known = run_options();
  for (const Option& option : known.all()) {
    EXPECT_EQ(record.contains(option.key()), option.effect == Effect::figures) << option.name;
  }
  using List = std::vector<std::string>;
  EXPECT_EQ(std::get<double>(record.at("ttl")), 1.5);
  EXPECT_EQ(std::get<std::string>(record.at("hold")), "exp(2ms)");
  EXPECT_EQ(std::get<List>(record.at("load")), List{"demand"}) << "it has a rate";
  EXPECT_EQ(std::get<std::int64_t>(record.at("clients")), 32);
  EXPECT_EQ(record.at("wait"), results::OptionValue(nullptr));
  EXPECT_EQ(record.at("iterations"), results::OptionValue(nullptr));
  EXPECT_EQ(std::get<List>(record.at("strategies")), List{"redis-*"});
  EXPECT_EQ(std::get<List>(record.at("redis")), List{"host:1/3"});
  EXPECT_EQ(std::get<std::string>(record.at("counter_redis")), "other:6379");
  for (const auto& [backend, server] : named_servers) {
    if (left_out(backend)) continue;
    EXPECT_EQ(std::get<std::string>(record.at(backend)), server.second);
  }
}

using testing::AllOf;
using testing::Not;

/// Refused values of an option, and the allowed range in the message.
struct Refused {
  std::string option, allowed;
  std::vector<std::string> values;
};

const std::string some_duration = "ns, us, ms, s, m or h, such as 250us";
const std::string distribution =
    "exp(2ms), or uniform(1ms,3ms), or lognormal(2ms,20ms), or quantiles:FILE";

const std::vector<Refused> all_refused{
    {"--clients",
     "1 to 100000",
     {"0", "100001", "-1", "abc", "1.5", "99999999999999999999", "8x", " 8", "0x10", "+8"}},
    {"--keys", "1 to 10000000 nor per-client", {"0", "10000001", "-1", "per-clinet", "1e3", "nan"}},
    {"--load", "alone, demand, saturated, reacquire", {"idle"}},
    {"--threads", "1 to 1024", {"0", "1025", "two"}},
    {"--key-skew", "0 to 10", {"-0.1", "nan", "inf", "1e999", "10.1", "x"}},
    {"--hot-set", "share=50%,keys=2500,move=10s", {"50%", "share=10%,keys=0"}},
    {"--hold", "at most 1h", {"2h", "exp(61m)"}},
    {"--hold", distribution, {"-1ms", "1", "abc", "nan", "exp(1ms", "1e30s", "5 ms x"}},
    {"--hold", "the first must not be above the second", {"uniform(3ms,1ms)"}},
    {"--think", "at most 1h", {"2h"}},
    {"--think", distribution, {"-1s", "inf", "uniform(1ms)"}},
    {"--think", some_duration, {"exp()"}},
    {"--rate",
     "0.001 to 10000000",
     {"0", "-1", "nan", "inf", "-inf", "1e8", "1e-9", "1e999", "5/s"}},
    {"--arrival", "constant, poisson", {"Poisson", "uniform"}},
    {"--duration", "1ms to 168h", {"0s", "169h"}},
    {"--duration", some_duration, {"3", "-3s", "3 seconds", "infs", "nans"}},
    {"--iterations", "1 to 1000000000000", {"0", "-5", "1e6", "18446744073709551616"}},
    {"--warmup", "0s to 1h", {"61m"}},
    {"--contended-grants", "1 to 1000000000", {"0", "-1"}},
    {"--ttl", "1ms to 24h", {"0s", "999us", "25h"}},
    {"--ttl", some_duration, {"10"}},
    {"--acquire-timeout", "0s to 24h", {"25h"}},
    {"--renew", "neither off nor auto nor a duration", {"on", "5", "-1s", "auto:1s"}},
    {"--renew", "1ms to 24h", {"0s", "25h"}},
    {"--renew-cap", "1ms to 168h", {"0s", "169h"}},
    {"--renew-deadline", "1ms to 24h", {"0s", "25h"}},
    {"--permits", "1 to 10000", {"0", "-1", "10001"}},
    {"--lock-at-least", "0s to 24h", {"25h"}},
    {"--on-acquire-error", "skip, proceed", {"ignore"}},
    {"--pool", "1 to 100000", {"0", "-1", "few"}},
    {"--client", "NAME=COMMAND", {"mine="}},
    {"--clients-per-process", "1 to 100000", {"0", "all"}},
    {"--nodes", "whole number from 1 to 15", {"0", "16", "-1", "five", "3.5"}},
    {"--node-timeout", "100us to 1h", {"0s", "2h"}},
    {"--replicas", "0 to 16", {"17", "-1", "two"}},
    {"--wait-replicas", "1 to 16 nor all", {"0", "17", "none", "1.5"}},
    {"--wait-timeout", "1ms to 1h", {"0s", "999us", "2h"}},
    {"--wait",
     "poll:INTERVAL, backoff:MIN..MAX",
     {"poll", "poll:", "poll:-1ms", "backoff:1ms", "spin"}},
    {"--wait", "(0 < MIN <= MAX)", {"backoff:5ms..1ms"}},
    {"--wait", "0s to 1h", {"poll:2h", "backoff:1ms..2h"}},
    {"--resource", "memory, redis, redis-fenced", {"disk"}},
    {"--repeat", "1 to 1000", {"0", "1001", "-1"}},
    {"--seed", "0 to 9223372036854775807", {"-1", "9223372036854775808", "0.5"}},
    {"--store-timeout", "1ms to 1h", {"0s", "2h"}},
    {"--rtt", "0s to 1h", {"2h"}},
    {"--threshold", "did you mean acquire.p90", {"acquire.p98<5ms"}},
    {"--shared-share", "from 0 to 1", {"-0.1", "1.1", "half"}},
    {"--locks-per-section", "1 to 64", {"0", "65", "-1", "two"}},
    {"--lock-order", "sorted, drawn, all-or-nothing", {"random"}},
    {"--deadlock-timeout", "1ms to 1h", {"0s", "2h"}},
    {"--lock-delay", "0s to 1h", {"2h"}},
    {"--format", "table, json, csv, markdown", {"xml", "Table"}},
    {"--metrics-listen", "such as 127.0.0.1:9464", {"x", "127.0.0.1:65536"}},
    {"--linger", "0s to 168h", {"169h"}},
    {"--history", "allowed: *.edn, *.jsonl", {"h.json", "edn", "h.EDN"}},
};

TEST(Options, ValuesThatAreRefusedAreNamedWithWhatIsAllowed) {
  for (const auto& [option, allowed, values] : all_refused) {
    for (const std::string& value : values) {
      ASSERT_EQ(value.find(allowed), std::string::npos) << "the value says it by itself";
      for (const auto& args :
           {std::vector{option, value}, std::vector{fmt::format("{}={}", option, value)}}) {
        const std::string error = error_of(args);
        EXPECT_THAT(error, AllOf(StartsWith(option + ": "), HasSubstr(value), HasSubstr(allowed),
                                 Not(HasSubstr("\n"))));
      }
    }
  }
}

TEST(Sweep, IsALoadAtEachRateAndNumberOfClients) {
  const auto options = parse_run({"--rate", "50,100,200", "--clients", "1,10"});
  ASSERT_TRUE(options) << options.error();
  std::vector<std::pair<int, double>> points;
  for (const loadgen::Workload& point : options->points()) {
    EXPECT_EQ(point.load, "demand");
    points.emplace_back(point.clients, point.rate.value_or(0));
  }
  EXPECT_THAT(points,
              testing::ElementsAre(std::pair(1, 50), std::pair(1, 100), std::pair(1, 200),
                                   std::pair(10, 50), std::pair(10, 100), std::pair(10, 200)));
  const OptionRecord record = workload_record(*options);
  EXPECT_EQ(record.at("rate"), results::OptionValue(std::vector<std::string>{"50", "100", "200"}));
  EXPECT_EQ(record.at("clients"), results::OptionValue(std::vector<std::string>{"1", "10"}));
}

TEST(Sweep, IsALoadWithEachPool) {
  const auto options = parse_run({"--pool", "5,10", "--work-connection"});
  ASSERT_TRUE(options) << options.error();
  ASSERT_THAT(options->points(), SizeIs(2));
  EXPECT_EQ(options->points()[1].pool, 10);
  EXPECT_EQ(load_of(options->points()[1]).pool, 10U);
  EXPECT_EQ(parse_run({"--pool", "5"})->workload.pool, 5);
}

TEST(Sweep, OfOneValueIsNone) {
  const auto options = parse_run({"--rate", "50", "--clients", "3,3"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->points(), SizeIs(1));
  EXPECT_EQ(workload_record(*options).at("rate"), results::OptionValue(50.0));
  EXPECT_EQ(workload_record(*options).at("clients"), results::OptionValue(std::int64_t{3}));
}

TEST(Sweep, IsBounded) {
  std::string rates = "1";
  for (int rate = 2; rate <= 60; ++rate) rates += fmt::format(",{}", rate);
  EXPECT_EQ(error_of({"--rate", rates}), "accepted");
  EXPECT_EQ(error_of({"--rate", rates, "--clients", "1,2"}),
            "--rate, --clients, --pool and --load make 120 loads: at most 100 are allowed");
}

}  // namespace
}  // namespace lockbench::cli
