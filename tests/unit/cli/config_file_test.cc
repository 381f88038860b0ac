#include <chrono>
#include <sstream>

#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

tl::expected<RunOptions, std::string> parse_file(const std::string& text,
                                                 std::vector<std::string> args = {}) {
  const TemporaryFile file("lockbench.toml", text);
  args.insert(args.end(), {"--config", file.path()});
  return parse_run(args);
}

/// The error for a file that must be refused, without the file's path, with which it must begin.
std::string file_error(const std::string& text) {
  const auto options = parse_file(text);
  if (options) return "accepted";
  const std::string& message = options.error();
  const std::size_t name = message.find("lockbench.toml: ");
  return name == std::string::npos ? "no file named: " + message : message.substr(name + 16);
}

/// The text without servers of stores that this build leaves out.
std::string of_this_build(const std::string& text) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (!left_out(line.substr(0, line.find(' ')))) kept += line + "\n";
  }
  return kept;
}

/// Every option, also those that a result does not record.
OptionRecord values_of(RunOptions options) {
  OptionRecord values;
  const OptionList list = options_of(options);
  for (const Option& option : list.all()) values[option.key()] = option.value();
  return values;
}

TEST(ConfigFile, HoldsEveryOption) {
  const auto options = parse_file(of_this_build(R"toml(
strategies = ["redis-setnx", "redis-getset*"]
clients = 64
threads = 3
keys = 10
key-skew = 1.1
hold = "uniform(1ms,3ms)"
think = "1ms"
rate = 100
arrival = "constant"
duration = "10s"
iterations = 7
warmup = "0s"
ttl = "2s"
acquire-timeout = "1s"
wait = "poll:5ms"
renew = "auto"
renew-cap = "1m"
renew-retry = true
renew-deadline = "1500ms"
permits = 3
lock-at-least = "30ms"
on-acquire-error = "proceed"
nodes = 7
node-timeout = "20ms"
shared-share = 0.5
locks-per-section = 3
lock-order = "drawn"
deadlock-timeout = "50ms"
lock-delay = "2s"
prefer-writers = true
resource = "redis"
replicas = 4
wait-replicas = 3
wait-timeout = "20ms"
repeat = 2
seed = 9
redis = ["redis://a", "redis://b"]
counter-redis = "redis://c"
memcached = "cache:1"
nats = "nats://ann:hunter2@bus"
etcd = "etcd://ann:hunter2@db"
mysql = "mysql://ann:hunter2@db"
postgres = "host=db password=hunter2"
zookeeper = "zk://ann:hunter2@zoo:1"
store-timeout = "2s"
threshold = "acquire.p99<5ms"
out = "x.json"
hdr = "histograms"
report = "page.html"
metrics-listen = "127.0.0.1:9464"
linger = "1m"
fault = ["store-kill@1s+500ms"]
format = "json"
columns = ["strategy", "sections"]
quiet = true
events = "e.jsonl"
strict = true
resume = true
allow-no-grants = true
contended-grants = 50
load = ["reacquire"]
)toml"));
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->workload.clients, 64);
  EXPECT_EQ(options->workload.rate, 100);
  EXPECT_EQ(options->servers_of("redis").size(), 2U);
  // The text above changes every option except the file's own name and options that conflict with
  // others.
  auto values = values_of(*options);
  const auto local = parse_file("rtt = \"5ms\"\ntls = true");
  ASSERT_TRUE(local) << local.error();
  EXPECT_EQ(local->workload.rtt, 5ms);
  for (const char* key : {"rtt", "tls"}) values[key] = values_of(*local).at(key);
  const auto sharded = parse_file("redis-cluster = true");
  ASSERT_TRUE(sharded) << sharded.error();
  values["redis_cluster"] = values_of(*sharded).at("redis_cluster");
  const auto hot = parse_file("keys = 10\nhot-set = \"share=50%,keys=5\"");
  ASSERT_TRUE(hot) << hot.error();
  values["hot_set"] = values_of(*hot).at("hot_set");
  const auto recorded = parse_file("history = \"h.edn\"");
  ASSERT_TRUE(recorded) << recorded.error();
  values["history"] = values_of(*recorded).at("history");
  const TemporaryFile trace("trace.csv", "1,0,1,7,2\n");
  const auto traced = parse_file("trace = \"" + trace.path() + "\"");
  ASSERT_TRUE(traced) << traced.error();
  values["trace"] = values_of(*traced).at("trace");
  const auto pooled = parse_file("pool = \"5,10\"\nwork-connection = true");
  ASSERT_TRUE(pooled) << pooled.error();
  for (const char* key : {"pool", "work_connection"}) values[key] = values_of(*pooled).at(key);
  const auto answering = parse_file(
      "client = \"here=echo '{\\\"id\\\":0,\\\"store\\\":\\\"redis\\\"}'; sleep "
      "9\"\nclients-per-process = 7");
  ASSERT_TRUE(answering) << answering.error();
  EXPECT_EQ(answering->strategies, std::vector<std::string>{"here"});
  for (const char* key : {"client", "clients_per_process"}) {
    values[key] = values_of(*answering).at(key);
  }
  for (const auto& [key, value] : values_of(RunOptions())) {
    if (left_out(key)) continue;
    EXPECT_NE(values.at(key), value) << key << " was not taken from the file";
  }
}

TEST(ConfigFile, TheCommandLineWins) {
  const auto options = parse_file(
      "clients = 64\nttl = \"2s\"\nstrategies = [\"redis-*\"]\nredis = [\"redis://a\"]\nquiet = "
      "true",
      {"--clients", "3", "none", "--redis", "redis://b", "--quiet=false"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->workload.clients, 3);
  EXPECT_EQ(options->workload.ttl, 2s);
  EXPECT_THAT(options->strategies, testing::ElementsAre("none"));
  EXPECT_THAT(options->servers_of("redis"), testing::ElementsAre("redis://b"));
  EXPECT_FALSE(options->output.quiet);
  EXPECT_TRUE(parse_file("clients = 0", {"--clients", "3"})) << "it is not looked at";
  EXPECT_TRUE(parse_file("keys = \"per-client\"")->workload.key_per_client);
}

TEST(ConfigFile, MisspeltKeysAreNamedWithCloseOnes) {
  EXPECT_EQ(file_error("clinets = 5"), "unknown key \"clinets\": did you mean clients?");
  EXPECT_THAT(file_error("zzzzzz = 5"), AllOf(StartsWith("unknown key \"zzzzzz\": allowed are"),
                                              HasSubstr("acquire-timeout")));
  EXPECT_THAT(file_error("[renewal]\nclients = 5"), StartsWith("unknown key \"renewal\""));
  EXPECT_EQ(file_error("[run]\nclinets = 5"),
            "[run]: unknown key \"clinets\": did you mean clients?");
  EXPECT_THAT(file_error("config = \"other.toml\""), StartsWith("unknown key \"config\""));
}

TEST(ConfigFile, TheTableOfACommandWinsAndThoseOfOthersAreSkipped) {
  const auto options = parse_file(
      "clients = 5\nttl = \"3s\"\n[run]\nclients = 7\nrate = 20\n[choose]\nwork-time-p50 = \"1s\"");
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->workload.clients, 7);
  EXPECT_EQ(options->workload.ttl, 3s);
  EXPECT_EQ(options->workload.rate, 20);
  EXPECT_THAT(file_error("[run.deeper]\nclients = 5"), StartsWith("[run]: unknown key \"deeper\""));
  EXPECT_THAT(file_error("run = 5"), StartsWith("unknown key \"run\""));
}

TEST(ConfigFile, ValuesAreCheckedLikeThoseOfTheCommandLine) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"clients = 0", "clients: \"0\" is not a whole number from 1 to 100000"},
      {"clients = 8.5", "clients: \"8.5\" is not a whole number from 1 to 100000"},
      {"clients = [8]", "clients: must be a string, a number, true or false"},
      {"clients = 2026-01-01", "clients: must be a string, a number, true or false"},
      {"quiet = 1", "quiet: \"1\" is not true or false"},
      {"rate = true", "rate: \"true\" is not a number from"},
      {"rate = nan", "rate: "},
      {"rate = inf", "rate: "},
      {"ttl = 10", "ttl: \"10\""},
      {"ttl = \"\"", "ttl: "},
      {"out = \"a\\u0000b\"", "out: "},
      {"arrival = \"a\\u0000b\"", "arrival: "},
      {"redis = {a = 1}", "redis: must be a string or a list of strings"},
      {"strategies = [[\"a\"]]", "strategies: must be a string or a list of strings"}};
  for (const auto& [text, error] : wrong) EXPECT_THAT(file_error(text), StartsWith(error)) << text;
}

TEST(ConfigFile, SyntaxErrorsAreOneLineWithTheirPlace) {
  for (const std::string text :
       {"clients = ", "= 5", "clients = 5\nclients = 6", "[[", "a = \"\xff\""}) {
    const std::string error = file_error(text);
    EXPECT_THAT(error, StartsWith("line ")) << text;
    EXPECT_THAT(error, Not(HasSubstr("\n")));
  }
}

TEST(ConfigFile, SecretsDoNotReachMessages) {
  EXPECT_THAT(file_error("redsi = \"redis://:hunter2@host\""), Not(HasSubstr("hunter2")));
  EXPECT_THAT(file_error("redis = \"redis://:hunter2@host"), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace lockbench::cli
