// Tests for every kind of server.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "testbed/servers/kinds.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNowhere = std::string::npos;

struct Kind {
  std::string name;
  std::function<StartedServer(Testbed&)> start;
  std::function<bool(const Server&)> serves;
  std::function<bool(const Server&)> write;  ///< false on failure
  std::function<bool(const Server&)> has;    ///< whether the written data is there
  bool keeps = true;                         ///< it keeps its data after its process ends

  friend std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }
};

bool etcd_serves(const Server& etcd) {
  return ask_line(etcd.port(), "GET /health HTTP/1.0\r\n\r\n", test::kPatience).has_value();
}

fs::path trace_in(const Server& zookeeper) { return zookeeper.data_folder() / "trace"; }

std::vector<Kind> kinds() {
  return {
      {.name = "redis",
       .start = [](Testbed& t) { return start_redis(t, open_to_all()); },
       .serves = [](const Server& s) { return ask(s.port(), "PING") == "+PONG"; },
       .write = [](const Server& s) { return ask(s.port(), "SET k v") == "+OK"; },
       .has = [](const Server& s) { return ask(s.port(), "EXISTS k") == ":1"; }},
      {.name = "etcd",
       .start = [](Testbed& t) { return start_etcd(t); },
       .serves = etcd_serves,
       .write = [](const Server& s) { return put_into_etcd(s).find(" 200 ") != kNowhere; },
       .has = [](const Server& s) { return get_from_etcd(s).find("dg==") != kNowhere; }},
      {.name = "memcached",
       .start = [](Testbed& t) { return start_memcached(t); },
       .serves = [](const Server& s) { return ask_memcached(s, "version").starts_with("V"); },
       .write = [](const Server& s) { return ask_memcached(s, "set k 0 0 1\r\nv") == "STORED"; },
       .has = [](const Server& s) { return ask_memcached(s, "get k") == "VALUE k 0 1"; },
       .keeps = false},
      {.name = "nats",
       .start = [](Testbed& t) { return start_nats(t); },
       .serves = [](const Server& s) { return ask_nats(s, "INFO").starts_with("{"); },
       .write =
           [](const Server& s) {
             return ask_nats(s, "STREAM.CREATE.k", R"({"name":"k"})").find("did_create") !=
                    kNowhere;
           },
       .has =
           [](const Server& s) {
             return ask_nats(s, "STREAM.INFO.k").find("\"config\"") != kNowhere;
           }},
      {.name = "postgres",
       .start = [](Testbed& t) { return start_postgres(t); },
       .serves = [](const Server& s) { return psql(s, "SELECT 1") == "1"; },
       .write = [](const Server& s) { return psql(s, "CREATE TABLE t AS VALUES (7)").empty(); },
       .has = [](const Server& s) { return psql(s, "TABLE t") == "7"; }},
      {.name = "mysql",
       .start = [](Testbed& t) { return start_mariadb(t); },
       .serves = [](const Server& s) { return mariadb(s, "SELECT 1") == "1"; },
       .write = [](const Server& s) { return mariadb(s, "CREATE DATABASE t").empty(); },
       .has = [](const Server& s) { return mariadb(s, "SHOW DATABASES LIKE 't'") == "t"; }},
      {.name = "zookeeper",
       .start = [](Testbed& t) { return start_zookeeper(t); },
       .serves = [](const Server& s) { return zookeeper_mode(s) == "standalone"; },
       .write = [](const Server& s) { return (std::ofstream(trace_in(s)) << 1).good(); },
       .has = [](const Server& s) { return fs::exists(trace_in(s)); }}};
}

class AnyServer : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Server> must_start_one() { return need(GetParam().start(*testbed_)); }

  std::unique_ptr<Testbed> testbed_ = must_start();
};

TEST_P(AnyServer, ComesBackOnItsPortWithItsDataOrWithout) {
  const auto server = must_start_one();
  const std::uint16_t port = server->port();
  const pid_t pid = server->pid();
  ASSERT_TRUE(GetParam().write(*server));
  ASSERT_TRUE(GetParam().has(*server));
  ASSERT_TRUE(server->kill_hard());
  EXPECT_TRUE(pid_is_gone(pid));
  EXPECT_FALSE(server->alive());
  EXPECT_FALSE(GetParam().serves(*server));
  // Once after its death, once while it runs.
  for (int restart = 0; restart < 2; ++restart) {
    need(server->restart(true));
    EXPECT_TRUE(server->alive());
    EXPECT_EQ(server->port(), port);
    EXPECT_EQ(GetParam().has(*server), GetParam().keeps);
  }
  need(server->restart(false));
  EXPECT_FALSE(GetParam().has(*server));
  EXPECT_TRUE(GetParam().serves(*server));
}

TEST_P(AnyServer, TriesAnotherPortWhenItLosesTheRace) {
  const auto other = must_start_one();  // it answers but is not ours
  const std::uint16_t good = free_loopback_port().value();
  int calls = 0;
  testbed_->choose_port = [&]() -> tl::expected<std::uint16_t, std::string> {
    return calls++ == 0 ? other->port() : good;
  };
  const auto server = must_start_one();
  EXPECT_EQ(server->port(), good);
  EXPECT_EQ(calls, 2);
}

INSTANTIATE_TEST_SUITE_P(Of, AnyServer, testing::ValuesIn(kinds()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace lockbench::testbed
