#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "testbed/proxy/proxy.h"
#include "tests/integration/testbed/support.h"
#include "tests/support/tcp_client.h"

namespace lockbench::testbed {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using test::TcpClient;
using End = TcpClient::End;

/// How long we listen to be sure that nothing comes; an answer takes much less.
constexpr auto kSilence = 150ms;
constexpr auto kDelay = 30ms;

/// Number of a Redis server's connections, without the asking one.
inline std::size_t connections_of(TcpClient& redis) {
  const std::string size = redis.ask("CLIENT LIST TYPE normal");
  std::size_t lines = 0;
  for (std::size_t left = std::stoul(size.substr(1)) + 2; left > 0; ++lines) {
    left -= redis.lines(1).size();
  }
  return lines - 2;  // the last line is empty
}

/// An empty server, for use behind proxies.
class ProxyFixture : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    testbed = must_start();
    server = must_start_redis(*testbed, {.durable = false});
  }
  static void TearDownTestSuite() {
    server.reset();
    testbed.reset();
  }

  ProxyFixture() { EXPECT_EQ(direct_.ask("FLUSHALL"), "+OK"); }

  std::unique_ptr<Proxy> proxy(const ProxyOptions& options = {}) {
    return proxy_before(server->port(), options);
  }
  std::unique_ptr<Proxy> proxy_before(std::uint16_t port, const ProxyOptions& options = {}) {
    return must(start_proxy(*pool_, port, options));
  }

  /// Number of the server's connections, without this one.
  std::size_t server_connections() { return connections_of(direct_); }

  static inline std::unique_ptr<Testbed> testbed;
  static inline std::unique_ptr<Server> server;
  std::unique_ptr<ProxyPool> pool_ = ProxyPool::start().value();
  TcpClient direct_{server->port()};
};

template <class Work>
Clock::duration time_of(const Work& work) {
  const auto begin = Clock::now();
  work();
  return Clock::now() - begin;
}
inline Clock::duration time_of(TcpClient& client, const std::string& command) {
  return time_of([&] { EXPECT_NE(client.ask(command), ""); });
}

inline std::string echoes(std::size_t count) {
  std::string commands;
  for (std::size_t i = 0; i < count; ++i)
    commands += "ECHO " + std::to_string(100'000 + i) + "\r\n";
  return commands;
}

}  // namespace lockbench::testbed
