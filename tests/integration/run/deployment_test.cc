#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "tests/integration/run/watch.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

constexpr int kOtherDatabase = 3;

/// A Redis that others use too: with a password, data, and a user who may only touch our keys.
class SharedDeployment : public testing::Test {
 protected:
  SharedDeployment()
      : server_(own_redis(
            {.users = {fmt::format("{} on >{} resetkeys ~lockbench:* &lockbench:* -@all +@read "
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

  /// In nothing that was written, in neither spelling, whole or in part.
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
      EXPECT_TRUE(key.starts_with(prefix)) << key;
      owners.insert(key.substr(prefix.size(), key.find(':', prefix.size()) - prefix.size()));
    }
  }
  EXPECT_EQ(owners.size(), result.at("runs").size()) << "every strategy was seen";
  EXPECT_EQ(result.at("environment").at("servers").at("redis").at("endpoints").dump(),
            fmt::format("[\"127.0.0.1:{}\"]", server_->port()));
}

TEST_F(SharedDeployment, IsLeftAsItWasAfterBrokenConnections) {
  const Scratch scratch;
  Program program(scratch,
                  {"run", "redis-set-nx-lua", "--redis", url_, "--resource", "redis", "--warmup",
                   "0ms", "--duration", "3s", "--hold", "1ms", "--out", "r.json"});
  ASSERT_TRUE(eventually([&] { return probe_.calls_of("evalsha") > 20; }));
  probe_.ask({"CLIENT", "KILL", "USER", std::string(kPlainUser)});
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_FALSE(result.at("runs").front().at("errors").empty());
  EXPECT_EQ(outcome.err.find("left behind"), std::string::npos) << outcome.err;
  expect_untouched();
  expect_no_secret(outcome, scratch);
}

TEST_F(SharedDeployment, MayCloseConnectionsThatAreIdle) {
  probe_.ask({"CONFIG", "SET", "timeout", "3"});
  const Scratch scratch;
  // A client alone is never idle; what sets the run up and clears it away is, while it lasts.
  const Outcome outcome =
      lockbench(scratch, {"run", "redis-set-nx", "--redis", server_->url(), "--resource", "redis",
                          "--warmup", "0ms", "--duration", "7500ms", "--hold", "1ms", "--clients",
                          "1", "--out", "r.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& run = result.at("runs").front();
  EXPECT_EQ(run.at("errors"), Json::array());
  EXPECT_EQ(run.at("generator").at("reasons").dump().find("127.0.0.1"), std::string::npos)
      << run.at("generator");
  EXPECT_GT(run.at("audit").at("increments"), 0);
  EXPECT_EQ(run.at("audit").at("increments"), run.at("audit").at("counter"));
  expect_no_secret(outcome, scratch);
}

}  // namespace
}  // namespace lockbench::test
