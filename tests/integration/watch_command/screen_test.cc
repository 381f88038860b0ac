#include <gmock/gmock.h>

#include <csignal>

#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class WatchScreen : public testing::Test {
 protected:
  WatchScreen() : probe_(server_->port()) {
    probe_.ask({"SET", "lock:mail:1", "owner-of-mail", "PX", "600000"});
    program_ = std::make_unique<Program>(
        scratch_, std::vector<std::string>{"watch", "--redis", server_->url(), "--locks", "lock:*"},
        Setting{.environment = {{"TERM", "xterm"}, {"LC_ALL", "C.UTF-8"}},
                .terminal = true,
                .typed = ""});
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

TEST(WatchWithoutAScreen, WritesLines) {
  const auto server = own_redis({.durable = false});
  RedisProbe probe(server->port());
  probe.ask({"SET", "lock:leak:1", "x"});
  const Scratch scratch;
  Program program(scratch, {"watch", "--redis", server->url(), "--locks", "lock:*"});
  EXPECT_TRUE(program.says("CLIENT TRACKING")) << program.said();
  EXPECT_TRUE(program.says("cannot see attempts that were refused"));
  EXPECT_TRUE(program.says("no_ttl: redis lock:*")) << program.said();
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err + outcome.out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace lockbench::test
