#include "exporter/http_endpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <new>
#include <thread>

#include "strategies/carrier.h"
#include "testbed/servers/machine.h"
#include "tests/support/tcp_client.h"

namespace lockbench::exporter {
namespace {

using namespace std::chrono_literals;
using test::http_get;
using test::TcpClient;

constexpr unsigned kConnections = 1280;

class HttpEndpointTest : public testing::Test {
 protected:
  HttpEndpointTest() {
    static_cast<void>(testbed::raise_open_file_limit(4096));
    auto started = HttpEndpoint::start(
        {},
        [](std::string_view path) {
          if (path == "/page") return Page{.body = std::string(kBody)};
          if (path == "/too-large") throw std::bad_alloc();
          return Page{.status = 404, .body = "none\n"};
        },
        kConnections);
    if (!started) throw std::runtime_error(started.error());
    endpoint_ = std::move(*started);
  }

  std::uint16_t port() const { return endpoint_->address().port; }

  static constexpr std::string_view kBody = "hello\n";
  std::unique_ptr<HttpEndpoint> endpoint_;
};

TEST_F(HttpEndpointTest, AnswersByPath) {
  const auto page = http_get(port(), "/page?a=b");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, kBody);
  EXPECT_NE(page.head.find("text/plain"), std::string::npos);
  EXPECT_EQ(http_get(port(), "/other").status, 404);
}

TEST_F(HttpEndpointTest, OnlyReads) {
  TcpClient connection(port());
  connection.send("POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_TRUE(connection.rest().starts_with("HTTP/1.1 405"));
  TcpClient head(port());
  head.send("HEAD /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(head.rest().ends_with("\r\n\r\n"));
}

TEST_F(HttpEndpointTest, AThousandThatSayNothingHoldNobodyUp) {
  std::deque<TcpClient> silent;
  for (int i = 0; i < 1000; ++i) {
    silent.emplace_back(port());
    if (i % 2 == 0) silent.back().send("GET /page HT");
  }
  EXPECT_EQ(http_get(port(), "/page").status, 200);
  EXPECT_EQ(silent.back().end(0ms), TcpClient::End::open) << "it is still there";
  EXPECT_NE(silent.back().end(), TcpClient::End::open) << "but not for ever";
}

/// Pauses between requests or bytes.
void pause(const std::stop_token& stop) {
  Carrier::current().wait(nullptr, Carrier::current().now() + 100ms, stop);
}

/// Sends a byte of a request on each connection in turn, for ever.
std::jthread drip_on(std::deque<TcpClient>& connections) {
  return std::jthread([&connections](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (TcpClient& one : connections) one.send("G");
      pause(stop);
    }
  });
}

TEST_F(HttpEndpointTest, MoreThatDripThanThereArePlacesHoldNobodyUp) {
  constexpr unsigned kPlaces = 64;
  auto small = HttpEndpoint::start(
      {}, [](std::string_view) { return Page{.body = std::string(kBody)}; }, kPlaces);
  ASSERT_TRUE(small) << small.error();
  const std::uint16_t at = (*small)->address().port;
  std::deque<TcpClient> slow;
  for (unsigned i = 0; i < 3 * kPlaces; ++i) slow.emplace_back(at);
  const std::jthread dripping = drip_on(slow);
  for (int scrape = 0; scrape < 20; ++scrape) EXPECT_EQ(http_get(at, "/page").status, 200);
}

TEST_F(HttpEndpointTest, AnAnswerThatFailsIsStatus500) {
  EXPECT_EQ(http_get(port(), "/too-large").status, 500);
  EXPECT_EQ(http_get(port(), "/page").status, 200);
}

TEST_F(HttpEndpointTest, EndsWhileConnectionsAreOpen) {
  TcpClient open(port());
  open.send("GET /page");
  const std::uint16_t was = port();
  endpoint_.reset();
  EXPECT_THROW(TcpClient{was}, std::runtime_error);
}

std::string listened(std::string_view text) {
  const auto address = parse_listen_address(text);
  return address ? address->to_string() : "refused";
}

TEST(ListenAddressTest, IsOnTheLoopbackUnlessToldOtherwise) {
  EXPECT_EQ(listened("9464"), "127.0.0.1:9464");
  EXPECT_EQ(listened(":9464"), "127.0.0.1:9464");
  EXPECT_EQ(listened("localhost:9464"), "127.0.0.1:9464");
  EXPECT_EQ(listened("0.0.0.0:9464"), "0.0.0.0:9464");
  EXPECT_EQ(listened("[::1]:0"), "[::1]:0");
}

TEST(ListenAddressTest, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", ":", "x", "1.2.3.4", "1.2.3:80", "::1:80", "[::1]", "[]:80", "[1.2.3.4]:80", "a:b:c",
        "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:9464x", "example.org:80"}) {
    const auto address = parse_listen_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_NE(address.error().find('"' + std::string(text) + '"'), std::string::npos);
  }
}

TEST(ListenAddressTest, IsNamedIfItCannotBeHad) {
  ListenAddress first;
  const auto listener = listen_on(first);
  ASSERT_TRUE(listener) << listener.error();
  EXPECT_NE(first.port, 0);
  ListenAddress second = first;
  const auto again = listen_on(second);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().find(first.to_string()), std::string::npos);
  EXPECT_NE(again.error().find("another program listens there"), std::string::npos);
  close(*listener);
  ListenAddress foreign{.host = "192.0.2.1", .port = 9464};
  EXPECT_NE(listen_on(foreign).error().find("192.0.2.1:9464"), std::string::npos);
}

}  // namespace
}  // namespace lockbench::exporter
