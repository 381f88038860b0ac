#include <gmock/gmock.h>

#include "strategies/nats/client/connection.h"
#include "strategies/registry.h"
#include "tests/conformance/common/full_use.h"
#include "tests/conformance/nats/nats_test_store.h"
#include "tests/support/must.h"

namespace lockbench::test {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::string_view kPassword = "hunter2";

/// The documented user, under another name than the testbed's, without this right.
std::unique_ptr<testbed::Server> server_without(const std::string& right) {
  std::string user = fmt::format(
      "{}", fmt::join(documented_rights("{ user: ", {{"user: lockbench", "user: plain"},
                                                     {"PASSWORD", std::string(kPassword)}}),
                      "\n"));
  if (!right.empty()) {
    const std::size_t at = user.find("\"" + right + "\"");
    if (at == std::string::npos) throw std::runtime_error(right + " is not documented");
    user.replace(at, right.size() + 2, "\"nothing\"");
  }
  return must(testbed::start_nats(shared_testbed(), {.users = {user}}));
}

std::string url_of_plain(const testbed::Server& server) {
  return fmt::format("nats://plain:{}@127.0.0.1:{}", kPassword, server.port());
}

TEST(NatsRights, AreEnoughAndGiveNothingElse) {
  const auto server = server_without("");
  EXPECT_THAT(use_all_fully("nats", url_of_plain(*server)), Each(""));
  const auto env = make_system_env(3);
  nats::Connection user(*nats::parse_endpoint(url_of_plain(*server)), kPatience, *env);
  for (const char* subject : {"orders", "$JS.API.STREAM.UPDATE.x", "$JS.API.CONSUMER.CREATE.x"}) {
    const auto answer = user.ask({.name = "HPUB", .key = "k", .subject = subject});
    ASSERT_FALSE(answer) << subject;
    EXPECT_EQ(answer.error().kind, StoreError::Kind::rejected);
    EXPECT_THAT(answer.error().message, HasSubstr("Permissions Violation")) << subject;
  }
}

TEST(NatsRights, AreAllNeeded) {
  for (const char* right :
       {"$KV.*.*", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.MSG.GET.*",
        "$JS.API.STREAM.PURGE.*", "$JS.API.STREAM.LIST", "$JS.API.STREAM.DELETE.*", "_INBOX.>"}) {
    const auto server = server_without(right);
    EXPECT_THAT(use_fully(*find_strategy("nats-kv"), {url_of_plain(*server)}),
                HasSubstr("ermission"))
        << right;
  }
}

}  // namespace
}  // namespace lockbench::test
