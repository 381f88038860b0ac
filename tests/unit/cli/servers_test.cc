#include "tests/support/servers.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <thread>

#include "deployment/deployment.h"
#include "strategies/registry.h"
#include "tests/support/eventually.h"
#include "tests/support/listener.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using deployment::ask_server;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Listens on loopback and gives the same answer to every request, once per connection.
class Answering {
 public:
  explicit Answering(std::string answer)
      : answer_(std::move(answer)), display_(fmt::format("127.0.0.1:{}", listener_.port())) {}
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;
  ~Answering() { shutdown(listener_.fd(), SHUT_RDWR); }

  const std::string& display() const { return display_; }
  std::string url() const { return "redis://" + display_; }

 private:
  void serve() const {
    // The destructor ends this.
    for (int client = 0; (client = accept(listener_.fd(), nullptr, nullptr)) >= 0; close(client)) {
      const timeval limit{.tv_sec = test::kPatience.count(), .tv_usec = 0};
      setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      std::array<char, 256> asked{};
      if (recv(client, asked.data(), asked.size(), 0) > 0) {
        static_cast<void>(send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL));
      }
    }
  }

  const std::string answer_;
  const test::Listener listener_;
  const std::string display_;
  const std::jthread thread_{[this] { serve(); }};
};

TEST(AskServer, AServerThatWantsAPasswordIsRefused) {
  testbed::RedisOptions options;
  options.config = {"user default on >hunter2 ~* &* +@all"};
  const auto locked = test::own_redis(options);
  const std::string display = locked->address();
  const auto without = ask_server("redis", "redis://" + display, test::kPatience);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error(), HasSubstr("NOAUTH"));
  EXPECT_THAT(without.error(), StartsWith(display));
  EXPECT_TRUE(ask_server("redis", "redis://:hunter2@" + display, test::kPatience));
  const auto wrong = ask_server("redis", "redis://:hunter3@" + display, test::kPatience);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error(), Not(HasSubstr("hunter")));
}

TEST(AskServer, ASecretThatTheServerQuotesIsNotRepeated) {
  const Answering server(
      "-ERR unknown command 'AUTH', with args beginning with: 'open-sesame'\r\n");
  const auto asked =
      ask_server("redis", "redis://:open-sesame@" + server.display(), test::kPatience);
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error(), HasSubstr("AUTH was refused: ERR"));
  EXPECT_THAT(asked.error(), Not(HasSubstr("sesame")));
}

TEST(AskServer, AServerWithoutRoomForAClientSaysSoWhateverThePassword) {
  const Answering server("-ERR max number of clients reached\r\n");
  const auto asked =
      ask_server("redis", "redis://:open-sesame@" + server.display(), test::kPatience);
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error(), HasSubstr("the connection was refused: max number of clients"));
  EXPECT_THAT(asked.error(), Not(HasSubstr("AUTH")));
}

TEST(AskServer, AUserWhoMayNotPingMayStillLock) {
  const Answering server("-NOPERM this user has no permissions to run the 'ping' command\r\n");
  const auto asked = ask_server("redis", server.url(), test::kPatience);
  ASSERT_TRUE(asked) << asked.error();
  EXPECT_EQ(asked->version, "unknown");
}

TEST(AskServer, WhateverIsNotARedisIsRefused) {
  for (const std::string answer :
       {"HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n", ":1\r\n", "-ERR unknown command\r\n",
        "-NOAUTH Authentication required.\r\n", "-LOADING not yet\r\n", "+PONGO\r\n", ""}) {
    const Answering server(answer);
    const auto asked = ask_server("redis", server.url(), test::kPatience);
    ASSERT_FALSE(asked) << answer;
    EXPECT_THAT(asked.error(), StartsWith(server.display())) << answer;
  }
}

TEST(QuorumServers, AreEachNamedOnce) {
  const auto error = [](std::vector<std::string> urls) {
    const deployment::Request request{.given = {{"redis", std::move(urls)}},
                                      .command_timeout = std::chrono::milliseconds(100)};
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

TEST(Doctor, ReportsAServerThatCannotBeUsed) {
  const Answering server("-NOAUTH Authentication required.\r\n");
  const Ran result = ran({"doctor", "--redis", server.url()});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out,
              testing::ContainsRegex("--redis +FAILED +" + server.display() + ".*NOAUTH"));
}

TEST(Doctor, ShowsNoCommandsForATerminalThatAServerSends) {
  const Answering server(
      "-ERR a\x9b"
      "2Jb \xc2\x9b"
      "2Jc \x1b]0;d\x07 e\r\n");
  const Ran result = ran({"doctor", "--redis", server.url()});
  EXPECT_THAT(result.out, HasSubstr("ERR a"));
  for (const char* command : {"\x9b", "\x1b", "\x07"}) {
    EXPECT_THAT(result.out, Not(HasSubstr(command)));
  }
}

}  // namespace
}  // namespace lockbench::cli
