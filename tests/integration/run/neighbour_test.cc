#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "strategies/registry.h"
#include "strategies/store.h"
#include "strategies/zookeeper/client/messages.h"
#include "testbed/servers/kinds.h"
#include "testbed/servers/ports.h"
#include "testbed/servers/redis_group.h"
#include "tests/integration/support/program.h"
#include "tests/support/eventually.h"
#include "tests/support/must.h"
#include "tests/support/output_of.h"
#include "tests/support/servers.h"
#include "tests/support/zookeeper_bytes.h"

// Another user of the machine can do nothing to private servers that needs the secret.

namespace lockbench::test {
namespace {

using jute::number;
using jute::text;
using zookeeper::Reader;

constexpr unsigned kNobody = 65'534;

std::string int32(int value) { return number(value, 4); }

/// The complete messages.
std::vector<std::string> frames_of(std::string_view bytes) {
  std::vector<std::string> frames;
  for (Reader from(bytes); from.left() > 0;) {
    const std::string_view frame = from.text();
    if (!from.ok()) break;
    frames.emplace_back(frame);
  }
  return frames;
}

std::string everybody() {
  constexpr int kAllRights = 31;
  return int32(1) + int32(kAllRights) + text("world") + text("anyone");
}

/// Runs `attempt` in a child process as another user, and returns its result. Needs root.
std::string as_neighbour(const std::function<std::string()>& attempt) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no child process");
  if (child == 0) {
    std::string said = "cannot become another user";
    if (setgroups(0, nullptr) == 0 && setgid(kNobody) == 0 && setuid(kNobody) == 0) {
      said = attempt();
    }
    const bool whole =
        write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(whole ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 4096> bytes{};
  for (ssize_t got = 0; (got = read(ends[0], bytes.data(), bytes.size())) > 0;) {
    said.append(bytes.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0 ? said : said + "\nthe neighbour's process failed";
}

/// A line for each request whose answer contains none of the refusals.
std::string not_refused(std::uint16_t port, const std::vector<std::string>& requests,
                        const std::vector<std::string_view>& refusals) {
  std::string complaints;
  for (const std::string& request : requests) {
    const auto refused = [&](std::string_view answer) {
      return std::any_of(refusals.begin(), refusals.end(), [&](auto refusal) {
        return answer.find(refusal) != std::string_view::npos;
      });
    };
    const auto answer = testbed::ask_until(port, request + "\r\n", kPatience, refused);
    if (!answer || !refused(*answer)) {
      complaints += fmt::format("{}: {}\n", request, answer ? *answer : answer.error());
    }
  }
  return complaints;
}

/// One request to ZooKeeper in its own protocol: its number and its body.
struct ZookeeperRequest {
  int type = 0;
  std::string body;
};

namespace zookeeper_requests {
ZookeeperRequest create(std::string_view path) {
  return {1, text(path) + text("x") + everybody() + int32(0)};
}
ZookeeperRequest remove(std::string_view path) { return {2, text(path) + int32(-1)}; }
ZookeeperRequest get(std::string_view path) { return {4, text(path) + '\0'}; }
ZookeeperRequest set(std::string_view path) { return {5, text(path) + text("x") + int32(-1)}; }
ZookeeperRequest open_to_all(std::string_view path) {
  return {7, text(path) + everybody() + int32(-1)};
}
ZookeeperRequest children(std::string_view path) { return {8, text(path) + '\0'}; }
}  // namespace zookeeper_requests

struct ZookeeperReply {
  std::int64_t code = -1;  ///< 0: success
  std::string body;
};

/// Sends the requests in a new session, authenticated by "user:password" unless that is empty.
/// Throws std::runtime_error without an answer.
std::vector<ZookeeperReply> ask_zookeeper(std::uint16_t port, std::string_view login,
                                          const std::vector<ZookeeperRequest>& requests) {
  constexpr int kAuthXid = -4, kAuth = 100;
  constexpr std::size_t kHeader = 16, kCodeAt = 12;
  std::string bytes = zookeeper::greet({}, std::chrono::seconds(10));
  std::size_t before = 1;
  if (!login.empty()) {
    bytes += text(int32(kAuthXid) + int32(kAuth) + int32(0) + text("digest") + text(login));
    ++before;
  }
  int xid = 0;
  for (const auto& [type, body] : requests) bytes += text(int32(++xid) + int32(type) + body);
  const std::size_t expected = before + requests.size();
  const auto answer = testbed::ask_until(port, bytes, kPatience, [&](std::string_view received) {
    return frames_of(received).size() >= expected;
  });
  if (!answer) throw std::runtime_error("ZooKeeper: " + answer.error());
  const auto frames = frames_of(*answer);
  std::vector<ZookeeperReply> replies;
  for (std::size_t i = before; i < frames.size(); ++i) {
    if (frames[i].size() < kHeader) throw std::runtime_error("ZooKeeper: a short answer");
    replies.push_back({jute::number_at(frames[i], kCodeAt, 4), frames[i].substr(kHeader)});
  }
  if (replies.size() != requests.size()) throw std::runtime_error("ZooKeeper: too few answers");
  return replies;
}

namespace fs = std::filesystem;
using testbed::Server;

constexpr const char* kGuess = "00000000000000000000000000000000";

/// Everything that the neighbour can reach: files of the testbed, signals to its processes, the
/// secret in the process list.
std::string reach_of(const std::vector<fs::path>& paths, pid_t server) {
  std::string complaints;
  for (const fs::path& path : paths) {
    for (const int mode : {O_RDONLY, O_WRONLY}) {
      if (open(path.c_str(), mode | O_NONBLOCK) >= 0) {
        complaints += fmt::format("{} can be opened\n", path.string());
      }
    }
  }
  if (kill(server, SIGTERM) == 0) complaints += "the server can be signalled\n";
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    std::ifstream file(process.path() / "cmdline");
    std::string words;
    for (std::string word; std::getline(file, word, '\0');) words += word + " ";
    if (words.find(shared_testbed().secret()) != std::string::npos) {
      complaints += "the secret is an argument: " + words + "\n";
    }
  }
  return complaints;
}

class Neighbour : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }

  /// Expects that the lock is still in use, unharmed by the neighbour.
  static void expect_in_use(std::string_view store, const std::string& url) {
    const auto reached = find_store_kind(store)->make(url, kPatience)->reach({});
    EXPECT_TRUE(reached) << reached.error().message;
  }
  static void expect_out_of_reach(const Server& server) {
    std::vector<fs::path> paths = {shared_testbed().folder()};
    std::error_code gone;  // a server may be removing its files just now
    fs::recursive_directory_iterator entry(paths.front(), gone);
    for (; entry != fs::recursive_directory_iterator(); entry.increment(gone)) {
      paths.push_back(entry->path());
    }
    EXPECT_EQ(as_neighbour([&] { return reach_of(paths, server.pid()); }), "");
    EXPECT_TRUE(server.alive());
  }
};

TEST_F(Neighbour, IsKeptOutOfRedisAndItsSentinels) {
  const auto group = must(testbed::start_redis_group(shared_testbed(), {.replicas = 1}));
  const auto sentinels = must(testbed::start_sentinels(shared_testbed(), group->primary().port()));
  const std::vector<std::string> requests = {"PING",
                                             "GET lock",
                                             "SET lock mine",
                                             "FLUSHALL",
                                             "CONFIG SET dir /tmp",
                                             "ACL LIST",
                                             "REPLICAOF NO ONE",
                                             "SENTINEL REMOVE lock",
                                             "SENTINEL FAILOVER lock",
                                             "SHUTDOWN NOSAVE",
                                             fmt::format("AUTH lockbench {}", kGuess),
                                             fmt::format("AUTH {}", kGuess),
                                             "AUTH default \"\""};
  std::vector<const Server*> all = {&group->primary(), &group->replica(0)};
  for (std::size_t i = 0; i < 3; ++i) all.push_back(&sentinels->sentinel(i));
  for (const Server* server : all) {
    EXPECT_EQ(as_neighbour([&] {
                return not_refused(server->port(), requests,
                                   {"-NOAUTH", "-WRONGPASS", "-ERR unknown command"});
              }),
              "");
    expect_out_of_reach(*server);
  }
  expect_in_use("redis", group->primary().url());
  expect_in_use("redis", sentinels->url());
}

TEST_F(Neighbour, IsKeptOutOfMemcached) {
  const auto server = must(testbed::start_memcached(shared_testbed()));
  const std::string guess = fmt::format("lockbench {}", kGuess);
  const std::vector<std::string> requests = {
      "version", "get lock",  "set lock 0 0 4\r\nmine",
      "stats",   "flush_all", "cache_memlimit 1",
      "watch",   "shutdown",  fmt::format("set x 0 0 {}\r\n{}", guess.size(), guess)};
  EXPECT_EQ(as_neighbour([&] { return not_refused(server->port(), requests, {"CLIENT_ERROR"}); }),
            "");
  expect_out_of_reach(*server);
  expect_in_use("memcached", server->url());
}

TEST_F(Neighbour, IsKeptOutOfNats) {
  const auto server = must(testbed::start_nats(shared_testbed()));
  const std::vector<std::string> requests = {
      "SUB > 1", "PUB $JS.API.STREAM.NAMES 0\r\n", "CONNECT {}\r\nPING",
      fmt::format(R"(CONNECT {{"user":"lockbench","pass":"{}"}})", kGuess)};
  EXPECT_EQ(as_neighbour(
                [&] { return not_refused(server->port(), requests, {"Authorization Violation"}); }),
            "");
  expect_out_of_reach(*server);
  expect_in_use("nats", server->url());
}

/// Holds a lock of each of a store's strategies during its lifetime.
class HeldLocks {
 public:
  HeldLocks(std::string_view store, const std::string& url)
      : endpoints_{{std::string(store), {url}}} {
    for (const Descriptor* strategy : all_strategies()) {
      if (strategy->backend != store) continue;
      locks_.push_back(make_strategy(
          *strategy,
          Context{
              .endpoints = endpoints_, .options = options_, .env = *env_, .services = services_}));
      const auto connected = locks_.back()->connect();
      if (!connected) throw std::runtime_error(connected.error().message);
      const AcquireResult held =
          locks_.back()->acquire({.key = fmt::format("lockbench:neighbours:{}", strategy->name),
                                  .ttl = std::chrono::seconds(30),
                                  .deadline = env_->now() + kPatience});
      if (!held.lease) throw std::runtime_error("not granted: " + held.reason);
    }
  }

 private:
  const std::unique_ptr<Env> env_ = make_system_env(1);
  const StrategyOptions options_{};
  const Endpoints endpoints_;
  Services services_;
  std::vector<std::unique_ptr<LockStrategy>> locks_;
};

/// A request to etcd's HTTP gateway, without authentication.
std::string etcd_request(std::string_view method, const std::string& body) {
  return fmt::format(
      "POST /v3/{} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      method, body.size(), body);
}

/// Requests to end all leases; any user may list them.
std::vector<std::string> revocations(std::uint16_t port) {
  const auto whole = [](std::string_view) { return false; };
  const std::string leases =
      testbed::ask_until(port, etcd_request("lease/leases", "{}"), kPatience, whole).value_or("");
  constexpr std::string_view kLabel = R"("ID":")";
  std::vector<std::string> requests;
  for (std::size_t at = 0; (at = leases.find(kLabel, at)) != std::string::npos;) {
    at += kLabel.size();
    const std::string id = leases.substr(at, leases.find('"', at) - at);
    requests.push_back(etcd_request("lease/revoke", fmt::format(R"({{"ID":"{}"}})", id)));
  }
  return requests;
}

TEST_F(Neighbour, IsKeptOutOfEtcdAndOfItsCluster) {
  if (find_store_kind("etcd") == nullptr) GTEST_SKIP() << "left out of this build";
  const auto members = must(testbed::start_etcd_cluster(shared_testbed()));
  const auto alone = must(testbed::start_etcd(shared_testbed()));
  const HeldLocks locks("etcd", alone->url());
  const std::vector<std::string_view> refusals = {"user name is empty", "authentication failed"};
  const std::vector<std::string> leases = revocations(alone->port());
  EXPECT_FALSE(leases.empty());
  EXPECT_EQ(as_neighbour([&] { return not_refused(alone->port(), leases, refusals); }), "");
  const std::vector<std::string> requests = {
      etcd_request("kv/range", R"({"key":"AA==","range_end":"AA=="})"),
      etcd_request("kv/put", R"({"key":"aw==","value":"dg=="})"),
      etcd_request("kv/deleterange", R"({"key":"AA==","range_end":"AA=="})"),
      etcd_request("cluster/member/add", R"({"peerURLs":["http://127.0.0.1:1"]})"),
      etcd_request("cluster/member/remove", R"({"ID":"1"})"),
      etcd_request("maintenance/defragment", "{}"),
      etcd_request("auth/user/add", R"({"name":"eve","password":"eve"})"),
      etcd_request("auth/user/changepw", R"({"name":"root","password":"eve"})"),
      etcd_request("auth/disable", "{}"),
      etcd_request("auth/authenticate",
                   fmt::format(R"({{"name":"root","password":"{}"}})", kGuess))};
  std::vector<const Server*> all = {alone.get()};
  for (const auto& member : members) all.push_back(member.get());
  for (const Server* server : all) {
    EXPECT_EQ(as_neighbour([&] { return not_refused(server->port(), requests, refusals); }), "");
    expect_out_of_reach(*server);
    expect_in_use("etcd", server->url());
  }
  // A peer without a certificate gets no data of the cluster.
  for (const auto& member : members) {
    const std::uint16_t peer_port = member->ports().at(1);
    const auto whole = [](std::string_view) { return false; };
    const auto answer =
        testbed::ask_until(peer_port, "GET /members HTTP/1.0\r\n\r\n", kPatience, whole);
    EXPECT_EQ(answer.value_or("").find("member-"), std::string::npos);
  }
}

/// Adds this node and all nodes below it.
void add_nodes(const Server& server, const std::string& path, std::vector<std::string>& found) {
  const std::string login = fmt::format("{}:{}", testbed::kUser, server.secret());
  const auto reply = ask_zookeeper(server.port(), login, {zookeeper_requests::children(path)});
  found.push_back(path);
  for (const std::string& name : Reader(reply.front().body).texts()) {
    const std::string child = (path == "/" ? "" : path) + "/" + name;
    // Any user may read the server's own nodes there.
    if (child != "/zookeeper") add_nodes(server, child, found);
  }
}

TEST_F(Neighbour, IsKeptOutOfZookeeper) {
  constexpr int kNoAuth = -102;
  const auto server = must(testbed::start_zookeeper(shared_testbed()));
  const HeldLocks locks("zookeeper", server->url());
  std::vector<std::string> nodes;
  add_nodes(*server, "/", nodes);
  ASSERT_GT(nodes.size(), 4U) << "/, /lockbench, the run, its locks";
  for (const std::string& login : {std::string(), fmt::format("lockbench:{}", kGuess)}) {
    EXPECT_EQ(as_neighbour([&] {
                using namespace zookeeper_requests;
                std::string complaints;
                for (const std::string& node : nodes) {
                  std::vector<ZookeeperRequest> requests = {
                      create(node == "/" ? "/eve" : node + "/eve"), get(node), set(node),
                      children(node), open_to_all(node)};
                  if (node != "/") requests.push_back(remove(node));
                  for (const auto& reply : ask_zookeeper(server->port(), login, requests)) {
                    if (reply.code != kNoAuth)
                      complaints += fmt::format("{}: {}\n", node, reply.code);
                  }
                }
                return complaints;
              }),
              "");
  }
  // It must be as closed after a restart without data.
  expect_out_of_reach(*server);
  expect_in_use("zookeeper", server->url());
  ASSERT_TRUE(server->restart(false));
  EXPECT_EQ(ask_zookeeper(server->port(), "", {zookeeper_requests::create("/eve")}).front().code,
            kNoAuth);
  expect_in_use("zookeeper", server->url());
}

/// psql's output; the server must not let it in.
std::string psql_is_let_in(const std::string& address, const std::string& sql,
                           std::string_view refusal) {
  const std::string command = fmt::format(
      "PGPASSWORD={} timeout {} psql -XAtqw '{} user={} "
      "dbname=postgres' -c \"{}\" 2>&1",
      kGuess, kPatience.count(), address, testbed::kSuperuser, sql);
  const auto [said, status] = output_of(command);
  const bool refused = status != 0 && said.find(refusal) != std::string::npos;
  return refused ? "" : fmt::format("{}: {}: {}\n", address, sql, said);
}

TEST_F(Neighbour, IsKeptOutOfPostgresAndItsPooler) {
  if (find_store_kind("postgres") == nullptr) GTEST_SKIP() << "left out of this build";
  const auto server = must(testbed::start_postgres(shared_testbed()));
  const auto replica =
      must(testbed::start_postgres(shared_testbed(), {.primary_port = server->port()}));
  const auto pooler = must(testbed::start_pgbouncer(shared_testbed(), server->port()));
  EXPECT_EQ(as_neighbour([&] {
              std::string complaints;
              for (const Server* one : {server.get(), replica.get(), pooler.get()}) {
                const auto address = fmt::format("host=127.0.0.1 port={}", one->port());
                for (const char* sql : {"SELECT 1", "COPY (SELECT 1) TO PROGRAM 'true'"}) {
                  complaints += psql_is_let_in(address, sql, "authentication failed");
                }
                complaints +=
                    psql_is_let_in(address + " replication=database", "IDENTIFY_SYSTEM", "failed");
              }
              return complaints +
                     psql_is_let_in(fmt::format("host={} port={}", server->data_folder().string(),
                                                server->port()),
                                    "SELECT 1", "Permission denied");
            }),
            "");
  expect_out_of_reach(*server);
  expect_in_use("postgres", server->url());
  expect_in_use("postgres", pooler->url());
}

}  // namespace
}  // namespace lockbench::test
