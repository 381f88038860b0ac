// A store that answers nonsense, and the end of the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/folders.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/hostile_server.h"

namespace lockbench::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// Answers `:1` to everything but what is asked before and after the load. Each piece that comes is
/// one request.
class AlwaysOne : public Speaker {
 public:
  std::size_t request_length(std::string_view received) override { return received.size(); }
  std::string answer(std::string_view request) override {
    const std::string info = "# Server\r\nredis_version:7.0.15\r\nrun_id:1\r\n";
    if (request.find("PING") != std::string_view::npos) return "+PONG\r\n";
    if (request.find("INFO") == std::string_view::npos) return ":1\r\n";
    return "$" + std::to_string(info.size()) + "\r\n" + info + "\r\n";
  }
};

TEST(HostileStore, ThatAnswersOneToEverythingFailsTheRunWhoseResultIsSaved) {
  const HostileServer server([] { return std::make_unique<AlwaysOne>(); }, {});
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch, {"run", "redis-queue", "--redis", "redis://" + server.address(), "--clients", "4",
                "--warmup", "0ms", "--duration", "300ms", "--out", "r.json"});
  EXPECT_EQ(outcome.signal, 0) << outcome.err;
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redis-queue");
  EXPECT_EQ(run.at("outcomes").at("acquired"), 0);
  EXPECT_GT(run.at("outcomes").at("unknown"), 0);
  EXPECT_THAT(run.at("errors").get<std::vector<std::string>>(),
              Contains(HasSubstr("answered queue with the integer 1, expected {1, number}")));
}

TEST(Exit, RunsNoStaticDestructorsThatAThreadMayNeed) {
  const Scratch scratch;
  Setting setting;
  setting.environment["LD_PRELOAD"] = LOCKBENCH_BINARY_DIR "/lockbench-exit-witness.so";
  const Outcome outcome = lockbench(scratch, {"--version"}, setting);
  EXPECT_EQ(outcome.signal, 0) << outcome.err;
  EXPECT_EQ(outcome.code, 0);
  expect_in(outcome.out, "lockbench ");
}

}  // namespace
}  // namespace lockbench::test
