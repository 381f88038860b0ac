#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The file's entry for this family. Throws std::runtime_error if there is none.
const Json& observed(const Json& result, const std::string& family) {
  for (const Json& one : result.at("observed")) {
    if (one.at("family") == family) return one;
  }
  throw std::runtime_error("nothing observed of " + family + ": " + result.at("observed").dump());
}

TEST(WatchEnding, ASignalBeforeTheDurationIsOverSavesWhatWasSeen) {
  const auto server = own_redis({.durable = false});
  RedisProbe probe(server->port());
  const Scratch scratch;
  Program program(scratch, {"watch", "--redis", server->url(), "--locks", "lock:*", "--duration",
                            "1h", "--record", "seen.json", "--format", "json"});
  ASSERT_TRUE(program.says("CLIENT TRACKING"));
  probe.ask({"SET", "lock:a", "owner-token", "PX", "600000"});
  ASSERT_TRUE(eventually([&] { return probe.calls_of("pttl") > 0; }));
  const long long looks = probe.calls_of("pttl");
  probe.remove({"lock:a"});
  probe.ask({"SET", "lock:b", "owner-token", "PX", "600000"});
  ASSERT_TRUE(eventually([&] { return probe.calls_of("pttl") >= looks + 2; }));
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  const Json result = read_result(scratch / "seen.json");
  EXPECT_TRUE(result.at("interrupted"));
  EXPECT_EQ(Json::parse(outcome.out).at("observed"), result.at("observed"));
  const Json& locks = observed(result, "lock:*");
  EXPECT_EQ(locks.at("store"), "redis");
  EXPECT_EQ(locks.at("acquisitions"), 2);
  EXPECT_EQ(locks.at("releases"), 1);
  EXPECT_EQ(locks.at("held_now"), 1);
  EXPECT_THAT(scratch.all_text(), Not(HasSubstr("owner-token")));
}

TEST(WatchEnding, OnceEndsByItself) {
  const auto server = own_redis({.durable = false});
  RedisProbe probe(server->port());
  probe.ask({"SET", "lock:a", "owner-token", "PX", "600000"});
  const Scratch scratch;
  for (const std::string format : {"table", "markdown", "csv", "json"}) {
    const Outcome outcome = lockbench(scratch,
                                      {"watch", "--locks", "lock:*", "--once", "--duration",
                                       "700ms", "--format", format, "--quiet"},
                                      {.environment = {{"LOCKBENCH_REDIS", server->url()}}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("lock:")) << format;
    EXPECT_EQ(outcome.err, "") << format;
  }
  EXPECT_EQ(scratch.files(), std::vector<std::string>{}) << "nothing is saved unasked";
}

TEST(WatchEnding, WhatCannotBeReachedIsNamed) {
  const Scratch scratch;
  const std::string url = fmt::format("redis://:hidden@127.0.0.1:{}", closed_port());
  const Outcome outcome =
      lockbench(scratch, {"watch", "--redis", url, "--locks", "lock:*", "--once"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("127.0.0.1"), Not(HasSubstr("hidden"))));
  EXPECT_EQ(lines_of(outcome.err).size(), 1U);
}

TEST(WatchEnding, OneServerThatIsAwayAtTheStartStopsOnlyAWatchWithAnEnd) {
  const auto server = own_redis({.durable = false});
  const Scratch scratch;
  const std::string away = fmt::format("127.0.0.1:{}", closed_port());
  const std::vector<std::string> arguments{"watch",       "--redis", "redis://" + away, "--redis",
                                           server->url(), "--locks", "lock:*"};
  std::vector<std::string> once = arguments;
  once.emplace_back("--once");
  const Outcome refused = lockbench(scratch, once);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr(away));
  Program program(scratch, arguments);
  EXPECT_TRUE(program.says(away + ": BLIND for")) << program.said();
  EXPECT_TRUE(program.says("CLIENT TRACKING")) << program.said();
  program.signal(SIGINT);
  EXPECT_EQ(program.finish().code, 2) << "blind at its end";
}

TEST(WatchEnding, FilesThatCannotBeWrittenAreRefusedBeforeTheWatch) {
  const Scratch scratch;
  const std::string file = scratch.write("no-folder", "") + "/file";
  for (const std::string option : {"--record", "--report", "--workload"}) {
    const Outcome outcome =
        lockbench(scratch, {"watch", "--redis", "redis://127.0.0.1:1", "--once", option, file});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("no-folder")) << option;
  }
}

class WatchScreen : public testing::Test {
 protected:
  WatchScreen() : probe_(server_->port()) {
    probe_.ask({"SET", "lock:mail:1", "owner-of-mail", "PX", "600000"});
    program_ = std::make_unique<Program>(
        scratch_, std::vector<std::string>{"watch", "--redis", server_->url(), "--locks", "lock:*"},
        Setting{.environment = {{"TERM", "xterm"}, {"LC_ALL", "C.UTF-8"}},
                .terminal = true,
                .input = true});
  }

  bool shows(std::string_view text) { return program_->says(text); }

  std::unique_ptr<testbed::Server> server_ = own_redis({.durable = false});
  RedisProbe probe_;
  const Scratch scratch_;
  std::unique_ptr<Program> program_;
};

TEST_F(WatchScreen, DrawsTheTablesUntilASignalStopsIt) {
  ASSERT_TRUE(shows("lock:mail:1"));
  program_->signal(SIGINT);
  const Outcome outcome = program_->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("\x1b[H"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b[?"))) << "the terminal keeps its modes";
  EXPECT_THAT(outcome.out, Not(HasSubstr("owner-of-mail"))) << "owners are hashes";
  EXPECT_THAT(outcome.out.substr(outcome.out.rfind("\x1b[J")), HasSubstr("lock:*"))
      << "the table is shown at the end";
}

TEST_F(WatchScreen, GoesOnWhileTheServerIsAway) {
  ASSERT_TRUE(shows("lock:mail:1"));
  ASSERT_TRUE(server_->kill_hard());
  EXPECT_TRUE(shows("BLIND"));
  program_->signal(SIGINT);
  EXPECT_EQ(program_->finish().code, 2) << "blind at its end";
}

}  // namespace
}  // namespace lockbench::test
