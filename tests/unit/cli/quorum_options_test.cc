#include <chrono>

#include "deployment/deployment.h"
#include "strategies/registry.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(QuorumCommand, NamesWhatIsWrong) {
  const auto error = [](std::vector<std::string> args) {
    args.insert(args.begin(), "quorum");
    return ran(args).err;
  };
  EXPECT_THAT(error({"--nodes", "5", "--nodes", "16"}), HasSubstr("from 1 to 15"));
  EXPECT_THAT(error({"--nodes", "0"}), HasSubstr("from 1 to 15"));
  EXPECT_THAT(error({"--clients", "1001"}), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(error({"--slow", "0s"}), HasSubstr("1ms to 1h"));
  EXPECT_THAT(error({"--redis", "redis://h"}), HasSubstr("--redis")) << "it harms its own servers";
  EXPECT_THAT(error({"redlock"}), HasSubstr("only options"));
}

TEST(QuorumServers, AreEachNamedOnce) {
  const auto error = [](std::vector<std::string> urls) {
    const deployment::Request request{.given = {{"redis", std::move(urls)}},
                                      .command_timeout = 100ms};
    const auto drop = [](const auto&, std::string_view) {
      return tl::expected<void, std::string>();
    };
    return deployment::deploy(request, {find_strategy("redlock")}, drop).error();
  };
  EXPECT_THAT(error({"redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3/3"}),
              Not(HasSubstr("given twice")))
      << "nobody listens there";
  EXPECT_THAT(error({"redis://h:1", "redis://i", "redis://h:1"}), HasSubstr("h:1 is given twice"));
  EXPECT_THAT(error({"redis://h:1/0", "redis://h:1/1", "redis://h:1/2"}),
              HasSubstr("h:1 is given twice"))
      << "a database is no server";
  EXPECT_THAT(error({"unix:///run/r?db=1", "unix:///run/r?db=2"}), HasSubstr("is given twice"));
}

}  // namespace
}  // namespace lockbench::cli
