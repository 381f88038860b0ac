#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "testbed/servers/kinds.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

constexpr int kOtherDatabase = 3;

/// The keys in a command. Throws std::runtime_error for a command that lockbench has no reason to
/// send.
std::vector<std::string> keys_of(const SeenCommand& command) {
  const auto& words = command.words;
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), words.front()) != names.end();
  };
  if (is_one_of({"AUTH", "SELECT", "PING", "INFO", "MULTI", "EXEC"})) return {};
  if (is_one_of({"EVAL", "EVALSHA"})) return {words.at(3)};
  if (is_one_of({"DEL", "UNLINK"})) return {words.begin() + 1, words.end()};
  if (is_one_of({"SET", "SETNX", "GET", "GETSET", "EXPIRE", "BLPOP", "PUBLISH", "SUBSCRIBE",
                 "UNSUBSCRIBE", "ZADD", "ZRANGE", "ZREM"}))
    return {words.at(1)};
  throw std::runtime_error("nobody expects " + words.front() + " here");
}

/// A shared Redis: with a password, other data, and a user that may only touch our keys.
class SharedDeployment : public testing::Test {
 protected:
  SharedDeployment()
      : server_(own_redis({.config = {fmt::format(
                               "user {} on >{} resetkeys ~lockbench:* &lockbench:* -@all +@read "
                               "+@write +@scripting +@transaction +@connection +@pubsub +time "
                               "-@dangerous",
                               kPlainUser, kPlainPassword)}})),
        url_(fmt::format("redis://{}:{}@127.0.0.1:{}", kPlainUser, kPlainPasswordInUrl,
                         server_->port())),
        probe_(server_->port()) {
    for (const int database : {0, kOtherDatabase}) {
      probe_.ask({"SELECT", std::to_string(database)});
      probe_.ask({"SET", "lock", "not yours"});
      probe_.ask({"SET", "lockbench", "nor this"});
      probe_.ask({"RPUSH", "queue", "a", "b"});
      probe_.ask({"HSET", "hash:{lockbench}", "field", "1"});
      probe_.ask({"SET", "expiring", "1", "PX", "3600000"});
    }
    foreign_ = everything();
  }

  /// Every key of every database with its value, and whether it expires.
  std::map<std::string, std::string> everything() {
    std::map<std::string, std::string> found;
    for (int database = 0; database < 16; ++database) {
      probe_.ask({"SELECT", std::to_string(database)});
      for (const std::string& key : probe_.keys()) {
        found[fmt::format("{}/{}", database, key)] =
            fmt::format("{} {}", probe_.ask({"DUMP", key}), probe_.time_to_live(key).has_value());
      }
    }
    return found;
  }

  void expect_untouched() { EXPECT_TRUE(everything() == foreign_) << "other keys than before"; }

  /// Expects no secret in any output, plain or encoded, whole or in part.
  static void expect_no_secret(const Outcome& outcome, const Scratch& scratch) {
    for (const std::string& text : {outcome.out, outcome.err, scratch.all_text()}) {
      for (const std::string_view secret :
           {std::string_view("cr/et"), std::string_view("cr%2Fet"), std::string_view("t@%1"),
            std::string_view(shared_testbed().secret())}) {
        EXPECT_EQ(text.find(secret), std::string::npos) << secret << " is in: " << text;
      }
    }
  }

  std::unique_ptr<testbed::Server> server_;
  std::string url_;
  RedisProbe probe_;
  std::map<std::string, std::string> foreign_;
};

TEST_F(SharedDeployment, IsLeftAsItWasAfterARun) {
  const Scratch scratch;
  RedisMonitor log(server_->port());
  const Outcome outcome =
      lockbench(scratch, {"run", "redis-*", "--redis", url_, "--resource", "redis", "--keys", "3",
                          "--iterations", "30", "--warmup", "0ms", "--wait", "poll:1ms", "--format",
                          "json", "--out", "r.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<SeenCommand> commands = log.take_whole();
  expect_untouched();
  expect_no_secret(outcome, scratch);

  std::set<std::string> owners;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(Json::parse(outcome.out), result);
  const std::string prefix = fmt::format("lockbench:{}:{{", result.at("id").get<std::string>());
  for (const SeenCommand& command : commands) {
    for (const std::string& key : keys_of(command)) {
      if (key == "lockbench:runs") continue;  // in which each run notes its keys
      EXPECT_TRUE(key.starts_with(prefix)) << key;
      owners.insert(key.substr(prefix.size(), key.find(':', prefix.size()) - prefix.size()));
    }
  }
  EXPECT_EQ(owners.size(), result.at("runs").size()) << "every strategy was seen";
  EXPECT_EQ(result.at("environment").at("servers").at("redis").at("endpoints").dump(),
            fmt::format("[\"127.0.0.1:{}\"]", server_->port()));
}

using Words = std::vector<std::string>;

/// Creates the Redis user that lockbench proposes, under another name: test servers have a user
/// lockbench with all rights.
void make_user(RedisProbe& admin, const Scratch& scratch) {
  std::istringstream proposal(lockbench(scratch, {"list", "--redis-acl"}).out);
  Words words;
  for (std::string word; proposal >> word;)
    words.push_back(word == ">PASSWORD" ? ">hunter2" : word);
  words.at(2) = "tested";
  admin.ask(words);
  admin.ask({"ACL", "LOG", "RESET"});
}

TEST(ProposedRedisUser, MayRunProbeAndClean) {
  const auto redis = own_redis();
  RedisProbe admin(redis->port());
  const Scratch scratch;
  make_user(admin, scratch);
  const std::string url =
      scratch.write("redis", fmt::format("redis://tested:hunter2@127.0.0.1:{}/1", redis->port()));
  const Words last{"--redis", "@" + url};
  for (Words arguments :
       std::vector<Words>{{"doctor"},
                          {"run", "redis-fenced", "redis-queue", "--resource", "redis-fenced",
                           "--iterations", "50", "--warmup", "0s", "--out", "r.json"},
                          {"probe", "redis-watchdog", "--rate", "20", "--duration", "1s",
                           "--metrics-listen", ":0"},
                          {"clean", "--run", "20200101T000000Z-abcdef"}}) {
    arguments.insert(arguments.end(), last.begin(), last.end());
    const Outcome outcome = lockbench(scratch, arguments);
    EXPECT_EQ(outcome.code, 0) << arguments.front() << ": " << outcome.err << outcome.out;
    EXPECT_EQ(outcome.err.find("no permission"), std::string::npos) << outcome.err;
    EXPECT_EQ(admin.ask({"ACL", "LOG"}), "") << arguments.front();
  }
}

TEST(RedisCluster, CarriesTheLocksThatNeedNoWholeServer) {
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch, {"run", "redis-set-nx-lua", "redis-setnx-expire-multi", "redis-reentrant-notify",
                "redis-queue", "--redis-cluster", "--iterations", "50", "--keys", "5", "--clients",
                "4", "--warmup", "0ms", "--out", "r.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const Json& run : read_result(scratch / "r.json").at("runs")) {
    EXPECT_EQ(run.at("errors"), Json::array());
    EXPECT_GT(run.at("audit").at("increments"), 0);
  }
  const Outcome refused = lockbench(scratch, {"run", "redlock", "--redis-cluster"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, testing::HasSubstr("redlock cannot run here: its servers must each"));
}

/// A Redis, and a user of it that doctor tries.
class DoctorTriesALock : public testing::Test {
 protected:
  Outcome doctor(const std::string& more = "") {
    const std::string url = fmt::format("redis://tested:hunter2@127.0.0.1:{}", redis_->port());
    const std::string file = scratch_.write("probe.toml", "redis = [\"" + url + "\"]\n" + more);
    return lockbench(scratch_, {"doctor", "--config", file});
  }
  void allow(Words rights) {
    Words words = {"ACL", "SETUSER", "tested", "reset", "on", ">hunter2"};
    words.insert(words.end(), rights.begin(), rights.end());
    admin_.ask(words);
  }

  const std::unique_ptr<testbed::Server> redis_ = own_redis();
  RedisProbe admin_{redis_->port()};
  const Scratch scratch_;
};

TEST_F(DoctorTriesALock, AUserWhoMayOnlyPingMayNotLock) {
  allow({"+ping", "+info"});
  const Outcome outcome = doctor();
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, testing::ContainsRegex("--redis +ok "));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("redis-set-nx-lua +FAILED .*NOPERM"));
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex("which strategies it can run is unknown.*NOPERM"));
}

TEST_F(DoctorTriesALock, AnInterruptedTrialIsNoFailureOfTheLock) {
  // The server holds writes back, so the trial waits.
  admin_.ask({"CLIENT", "PAUSE", "600000", "WRITE"});
  Program program(scratch_, {"doctor", "--redis", "@" + scratch_.write("url", redis_->url()),
                             "--store-timeout", "10m"});
  ASSERT_TRUE(eventually([&] {
    return admin_.ask({"CLIENT", "LIST"}).find("flags=b") != std::string::npos;
  }));
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, testing::Not(testing::HasSubstr("redis-set-nx-lua")));
}

TEST_F(DoctorTriesALock, SaysWhichStrategiesTheServerCanRun) {
  allow({"+@all", "~*", "&*"});
  EXPECT_THAT(doctor().out, testing::ContainsRegex("has the commands of ([0-9]+) of [0-9]+"));
  const auto old = [] {
    testbed::RedisOptions options;
    options.config = {"rename-command WAIT \"\"", "rename-command BLPOP \"\""};
    return own_redis(std::move(options));
  }();
  const Scratch scratch;
  const std::string file = scratch.write("url", old->url());
  const std::string found = lockbench(scratch, {"doctor", "--redis", "@" + file}).out;
  EXPECT_THAT(found, testing::HasSubstr("cannot run redis-wait: it lacks wait (Redis 3.0)"));
  EXPECT_THAT(found, testing::HasSubstr("cannot run redis-queue: it lacks blpop"));
  EXPECT_THAT(found, testing::Not(testing::HasSubstr("cannot run redis-set-nx-lua")));
}

TEST_F(DoctorTriesALock, ByTheStrategiesOfAProbesFileAndLeavesNothing) {
  allow({"+@all", "~*", "&*"});
  const Outcome outcome = doctor(
      "strategies = [\"redis-fenced\", \"redis-queue\"]\nrate = 5\nduration = \"720h\"\n"
      "deployment = \"eu-1\"\nmetrics-listen = \"127.0.0.1:9465\"\n");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  for (const char* name : {"redis-fenced", "redis-queue"}) {
    EXPECT_THAT(outcome.out, testing::ContainsRegex(std::string(name) +
                                                    " +ok +a lock was taken and released 6 times, "
                                                    "and renewed [1-9]"));
  }
  EXPECT_THAT(admin_.keys(), testing::Each(testing::Not(testing::HasSubstr("{redis-"))));
  EXPECT_FALSE(has(outcome.out + outcome.err, "hunter2"));
}

TEST(TransactionPooler, IsNamedByDoctorAndByTheProbe) {
  const auto server = must(testbed::start_postgres(shared_testbed()));
  const auto pooler = must(
      testbed::start_pgbouncer(shared_testbed(), server->port(), {.pool_mode = "transaction"}));
  const Scratch scratch;
  const std::string file = scratch.write("postgres", pooler->url());
  const Outcome doctor =
      lockbench(scratch, {"doctor", "--postgres", "@" + file, "--strategies", "postgres-advisory"});
  EXPECT_EQ(doctor.code, 2);
  EXPECT_THAT(doctor.out, testing::ContainsRegex("postgres-advisory +FAILED .*transaction pooler"));
  const Outcome probe = lockbench(
      scratch, {"probe", "postgres-advisory", "--rate", "5", "--duration", "1s", "--postgres",
                "@" + file, "--metrics-listen", std::to_string(closed_port())});
  EXPECT_EQ(probe.code, 2);
  EXPECT_THAT(probe.err, testing::ContainsRegex("failing: refused: .*transaction pooler"));
}

/// Each of these variables would make it fail.
TEST(LibpqEnvironment, DoesNotReachPrivateServers) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, short_run({"postgres-advisory", "--out", "r.json"}),
                                    {.environment = {{"PGSSLMODE", "require"},
                                                     {"PGHOSTADDR", "192.0.2.1"},
                                                     {"PGSERVICE", "nosuch"},
                                                     {"PGOPTIONS", "-c nosuch=1"},
                                                     {"PGTZ", "nosuch"},
                                                     {"PGTARGETSESSIONATTRS", "read-only"}}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(LibpqEnvironment, CountsForTheUsersServerAndIsNamed) {
  const auto server = must(testbed::start_postgres(shared_testbed()));
  const std::string port = std::to_string(server->port());
  const Setting setting{.environment = {{"PGHOST", "127.0.0.1"},
                                        {"PGPORT", port},
                                        {"PGUSER", "postgres"},
                                        {"PGPASSWORD", server->secret()}}};
  const Scratch scratch;
  const Outcome found = lockbench(scratch, {"doctor", "--postgres", "dbname=postgres"}, setting);
  EXPECT_EQ(found.code, 0) << found.out;
  expect_in(found.out, fmt::format("127.0.0.1:{}, version ", port));
  expect_in(found.out, "PGHOST, PGPASSWORD, PGPORT, PGUSER: in force for --postgres");
  EXPECT_FALSE(has(found.out + found.err, server->secret()));
  // The DSN takes precedence.
  const std::string nowhere = std::to_string(closed_port());
  const Outcome given =
      lockbench(scratch, {"doctor", "--postgres", "dbname=postgres port=" + nowhere}, setting);
  EXPECT_EQ(given.code, 2);
  expect_in(given.out, "127.0.0.1:" + nowhere);
  const Outcome none = lockbench(scratch, {"doctor"}, setting);
  expect_in(none.out, "in force only with --postgres");
}

TEST(Doctor, CountsTheConnectionsOfTheClients) {
  const auto server = must(testbed::start_postgres(shared_testbed(), {.max_clients = 20}));
  const Scratch scratch;
  const std::string file = scratch.write("postgres", server->url());
  for (const auto& [clients, verdict] : {std::pair("8", "ok"), std::pair("30", "FAILED")}) {
    const Outcome outcome =
        lockbench(scratch, {"doctor", "--clients", clients, "--postgres", "@" + file});
    EXPECT_EQ(outcome.code, verdict == std::string("ok") ? 0 : 2) << outcome.out;
    EXPECT_THAT(outcome.out, testing::ContainsRegex(fmt::format(
                                 "--postgres +{} +max_connections is 20; {} clients need at least",
                                 verdict, clients)));
  }
}

}  // namespace
}  // namespace lockbench::test
