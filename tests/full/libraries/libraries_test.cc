#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "testbed/servers/kinds.h"
#include "tests/folders.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/integration/watch/sightings.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"
#include "tests/support/stalls.h"
#include "watch/ledger.h"

// Does a watch see correctly what third-party lock libraries do?
namespace lockbench::watch {
namespace {

using test::Json;
using test::Program;
using test::Scratch;
using Words = std::vector<std::string>;

constexpr std::string_view kClients = LOCKBENCH_SOURCE_DIR "/tests/full/libraries/clients/";
constexpr std::chrono::seconds kPatience(60);

/// A library's script as a process.
class Client {
 public:
  Client(const Scratch& scratch, const std::string& program, const Words& arguments)
      : program_(scratch, arguments, {.program = program}) {}

  pid_t pid() const { return program_.pid(); }
  /// Its own report, at its end.
  Json report() {
    const test::Outcome outcome = program_.finish(kPatience);
    const std::size_t at = outcome.out.find('{');
    if (outcome.code != 0 || at == std::string::npos) {
      throw std::runtime_error(
          fmt::format("a client ended with {}: {}{}", outcome.code, outcome.out, outcome.err));
    }
    return Json::parse(outcome.out.substr(at, outcome.out.find('\n', at) - at));
  }

 private:
  Program program_;
};

Client python(const Scratch& scratch, const std::string& script, Words arguments) {
  // Debian's python, which has Debian's libraries.
  arguments.insert(arguments.begin(), std::string(kClients) + script);
  return {scratch, "/usr/bin/python3", arguments};
}

/// A folder with the script, beside the libraries of clients/.
const std::string& node_folder() {
  static const std::string folder = [] {
    std::string made = LOCKBENCH_BINARY_DIR "/watched_clients";
    const std::string command = fmt::format(
        "mkdir -p {0} && cd {0} && exec 9>lock && flock 9 && cp {1}locks.mjs . && "
        "{2}/install node >npm.log 2>&1 && ln -sfn {2}/node/node_modules .",
        made, kClients, LOCKBENCH_SOURCE_DIR "/clients");
    if (std::system(command.c_str()) != 0) {  // NOLINT(concurrency-mt-unsafe): no other thread
      throw std::runtime_error("npm, which must be in PATH, cannot install the clients: see " +
                               made + "/npm.log");
    }
    return made;
  }();
  return folder;
}

Client node(const Scratch& scratch, Words arguments) {
  // Debian's node, or a newer one earlier in PATH.
  arguments.insert(arguments.begin(), {"node", node_folder() + "/locks.mjs"});
  return {scratch, "/usr/bin/env", arguments};
}

/// A watch's view of a source's sightings.
class Watched {
 public:
  Watched(const std::string& store, const std::string& url, const Request& request)
      : ledger_({}, Families(request.locks)), running_(store, url, request, ledger_) {
    EXPECT_TRUE(eventually([](const FamilyPicture&, const Picture& all) {
      return !all.sources.empty() && all.sources.front().sees;
    }));
  }

  /// Whether the figures of the only family become like that in time.
  bool eventually(const std::function<bool(const FamilyPicture&, const Picture&)>& like) {
    return test::eventually([&] {
      picture_ = ledger_.read(BootClock::now());
      return like(figures(), picture_);
    });
  }
  /// As of the latest read.
  FamilyPicture figures() const {
    return picture_.families.empty() ? FamilyPicture() : picture_.families.front();
  }

 private:
  Ledger ledger_;
  Running running_;
  Picture picture_;
};

/// Expects number and mean length of holds as the client reported them, within 1 % and 5 %; on a
/// machine that stood still for longer, the mean within what it stood still.
void expect_as_reported(Watched& watched, const Json& report) {
  const auto holds = report.at("holds").get<std::uint64_t>();
  watched.eventually(
      [&](const FamilyPicture& now, const Picture&) { return now.holds.count() >= holds; });
  const FamilyPicture figures = watched.figures();
  const double hundredth = 0.01 * static_cast<double>(holds);
  EXPECT_NEAR(static_cast<double>(figures.acquisitions), static_cast<double>(holds), hundredth);
  EXPECT_NEAR(static_cast<double>(figures.holds.count()), static_cast<double>(holds), hundredth);
  const double mean = report.at("mean").get<double>();
  EXPECT_NEAR(seconds(figures.holds.mean()), mean,
              std::max(0.05 * mean, 4 * seconds(test::stalls->worst())));
  EXPECT_EQ(figures.expired_while_held, 0U);
  EXPECT_EQ(figures.owner_changed, 0U);
  EXPECT_EQ(figures.held_now, 0U);
}

/// Long holds, so that a busy machine's scheduling adds little.
const Words holds_each{"4", "5", "0.5"};
Words holds_at(Words before, const Words& after = {}) {
  before.insert(before.end(), holds_each.begin(), holds_each.end());
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

TEST(WatchedLibraries, RedisPy) {
  const auto server = test::own_redis({.durable = false});
  Watched watched("redis", server->url(), {.locks = {"lock:*"}});
  const Scratch scratch;
  expect_as_reported(watched, python(scratch, "redis_py.py", holds_at({server->url()})).report());
}

TEST(WatchedLibraries, RedisSemaphoreAndANodeOfRedlock) {
  std::array<std::unique_ptr<testbed::Server>, 3> nodes;
  Words urls;
  for (auto& one : nodes) {
    one = test::own_redis({.durable = false});
    urls.push_back(one->url());
  }
  const Scratch scratch;
  Watched mutexes("redis", urls.front(), {.locks = {"mutex:*"}});
  expect_as_reported(mutexes, node(scratch, holds_at({"semaphore"}, {urls.front()})).report());
  Watched locks("redis", urls.front(), {.locks = {"lock:*"}});
  expect_as_reported(locks, node(scratch, holds_at({"redlock"}, urls)).report());
}

TEST(WatchedLibraries, Etcd3) {
  const auto server = test::must(testbed::start_etcd(test::shared_testbed()));
  Watched watched("etcd", server->url(), {.locks = {"locks/*"}});
  const Scratch scratch;
  expect_as_reported(watched, node(scratch, holds_at({"etcd3"}, {server->url()})).report());
}

class WatchedZookeeperLibraries : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared = test::must(testbed::start_zookeeper(test::shared_testbed()));
  }
  static void TearDownTestSuite() { shared.reset(); }

  /// The clients' login arguments.
  static Words login() {
    return {shared->address(), std::string(testbed::kUser), shared->secret()};
  }

  static std::unique_ptr<testbed::Server> shared;
  const Scratch scratch_;
  Watched watched_{"zookeeper", shared->url(), {.locks = {"/locks/*"}}};
};
std::unique_ptr<testbed::Server> WatchedZookeeperLibraries::shared;

TEST_F(WatchedZookeeperLibraries, Kazoo) {
  expect_as_reported(watched_, python(scratch_, "kazoo_lock.py", holds_at(login())).report());
}

TEST_F(WatchedZookeeperLibraries, Curator) {
  constexpr std::string_view kJars = "/usr/share/java/";
  std::string path;
  for (const char* jar : {"curator-recipes", "curator-framework", "curator-client", "zookeeper",
                          "zookeeper-jute", "guava", "slf4j-nop", "slf4j-api"}) {
    path += fmt::format("{}{}{}.jar", path.empty() ? "" : ":", kJars, jar);
  }
  Words arguments{"-XX:+UseSerialGC", "-cp", path, std::string(kClients) + "CuratorLock.java"};
  for (const std::string& word : login()) arguments.push_back(word);
  expect_as_reported(watched_, Client(scratch_, "/usr/bin/java", holds_at(arguments)).report());
}

}  // namespace
}  // namespace lockbench::watch
