#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <list>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/processes.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class KeysLeft : public testing::Test {
 protected:
  Words keys() {
    Words keys = probe_.keys();
    std::erase(keys, "lockbench:runs");
    return keys;
  }

  /// Each key ends by itself, or belongs to a run that is noted for later ones.
  void expect_noted() {
    const Words noted = lines_of(probe_.ask({"ZRANGE", "lockbench:runs", "0", "-1"}));
    EXPECT_THAT(keys(), Not(IsEmpty()));
    for (const std::string& key : keys()) {
      // It may have ended meanwhile.
      if (probe_.time_to_live(key) || !probe_.exists(key)) continue;
      EXPECT_TRUE(std::any_of(noted.begin(), noted.end(), [&](const std::string& prefix) {
        return key.starts_with(prefix);
      })) << key;
    }
  }

  const std::unique_ptr<testbed::Server> server_ = own_redis();
  RedisProbe probe_{server_->port()};
  const Scratch scratch_;
};

TEST_F(KeysLeft, InAFrozenStoreAreNamedWithTheCommandThatRemovesThem) {
  Words arguments = words(
      "run redis-queue --clients 4 --keys 2 --hold 5ms --duration 60s --warmup 0ms --ttl 2s "
      "--resource redis-fenced --store-timeout 300ms --out r.json --redis");
  arguments.push_back(server_->url());
  Program program(scratch_, arguments);
  ASSERT_TRUE(eventually([&] {
    const Words all = keys();
    return std::any_of(all.begin(), all.end(),
                       [](const std::string& key) { return key.ends_with(":counter"); });
  }));
  // lockbench:<run>:{<strategy>:...
  const std::string key = keys().front(), run = key.substr(10, key.find(":{") - 10);
  ASSERT_TRUE(server_->freeze());
  program.signal(SIGTERM);
  const Outcome outcome = program.finish();
  ASSERT_TRUE(server_->thaw());
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  expect_in(outcome.err, fmt::format("lockbench clean --run {} --redis URL", run));
  EXPECT_TRUE(read_result(scratch_ / "r.json").at("interrupted"));
  expect_noted();

  probe_.ask({"SET", "another's", "1"});
  const Outcome cleaned = lockbench(scratch_, {"clean", "--run", run, "--redis", server_->url()});
  EXPECT_EQ(cleaned.code, 0) << cleaned.err;
  EXPECT_EQ(probe_.keys(), Words{"another's"});
}

TEST(Clean, SaysWhichServerItCouldNotClean) {
  const Scratch scratch;
  const auto server = own_redis();
  const std::string away = fmt::format("127.0.0.1:{}", closed_port());
  const Outcome outcome =
      lockbench(scratch, {"clean", "--run", "20261121T012530Z-4f3a9c", "--redis", "redis://" + away,
                          "--redis", server->url()});
  EXPECT_EQ(outcome.code, 2);
  expect_in(outcome.err, fmt::format("redis {}: not cleaned: ", away));
  expect_in(outcome.out, fmt::format("redis {}: 0 removed", server->address()));
}

const Json measuring = {{"event", "progress"}, {"phase", "measuring"}, {"run", 1}};

/// Files in the folder other than results.
Words leftovers(const Scratch& scratch) {
  Words names;
  for (const auto& entry : fs::directory_iterator(scratch.path())) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("r.json")) names.push_back(name);
  }
  return names;
}

/// Servers and folders disappear with it at any moment: before and during their start, while they
/// run or are frozen, and while they stop.
TEST(Kill, LeavesNoProcessAndNoFolderBehind) {
  using Moment = std::function<bool(Program&, const Scratch&)>;
  const auto has_children = [](std::size_t number) -> Moment {
    return [=](Program& program, const Scratch&) {
      return descendants_of(program.pid()).size() >= number;
    };
  };
  const std::vector<Moment> moments{
      has_children(0),
      has_children(1),
      has_children(2),
      [](Program& program, const Scratch&) { return tells(program, measuring); },
      [](Program& program, const Scratch&) {
        return tells(program, measuring) &&
               kill(descendants_of(program.pid()).back(), SIGSTOP) == 0;
      },
      [](Program&, const Scratch& scratch) { return fs::exists(scratch / "r.json"); }};
  const Foster foster;
  const auto before = descendants_of(getpid());
  std::list<Scratch> scratches;
  for (const Moment& moment : moments) {
    const Scratch& scratch = scratches.emplace_back();
    Program program(scratch, {"run", "redis-set-nx", "none", "--duration", "2s", "--warmup", "0ms",
                              "--out", "r.json", "--events", "-"});
    EXPECT_TRUE(eventually([&] { return moment(program, scratch); }));
    program.signal(SIGKILL);
    program.finish();
  }
  const auto orphans = [&] {
    auto all = descendants_of(getpid());
    std::erase_if(all, [&](pid_t pid) {
      return std::find(before.begin(), before.end(), pid) != before.end();
    });
    return all;
  };
  EXPECT_TRUE(Foster::all_end(orphans()));
  EXPECT_TRUE(Foster::all_end(orphans())) << "and what these may have started";
  for (const Scratch& scratch : scratches) {
    EXPECT_TRUE(eventually([&] { return leftovers(scratch).empty(); }))
        << leftovers(scratch).front();
    if (!fs::exists(scratch / "r.json")) continue;
    EXPECT_NO_THROW(read_result(scratch / "r.json"));
  }
}

}  // namespace
}  // namespace lockbench::test
