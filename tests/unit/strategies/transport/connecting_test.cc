#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <thread>
#include <utility>

#include "strategies/transport/socket.h"
#include "tests/support/listener.h"
#include "tests/unit/strategies/transport/scripted_carrier.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

using Connected = tl::expected<std::unique_ptr<Transport>, std::string>;

Connected connect_by(const Resolver& resolver, Duration time_to_connect = kPatience) {
  auto connecting =
      begin_connecting({.host = "db.example", .port = 1}, time_to_connect, nullptr, resolver);
  if (!connecting) return tl::unexpected(connecting.error());
  return (*connecting)->get(kPatience, {});
}

Resolver resolves_to(std::vector<PeerAddress> addresses) {
  return [addresses](const std::string& /*host*/, int /*port*/) { return addresses; };
}

/// Resolves nothing until it is told to.
class HangingResolver {
 public:
  ~HangingResolver() {
    release();
    // The thread may still be about to leave.
    while (calls_.use_count() > 1) std::this_thread::yield();
  }

  Resolver resolver() {
    return [released = released_.get_future().share(), calls = calls_](
               const std::string& /*host*/, int /*port*/) -> PeerAddresses {
      ++*calls;
      released.wait();
      return tl::unexpected<std::string>("released");
    };
  }
  void release() {
    if (!std::exchange(is_released_, true)) released_.set_value();
  }
  int calls() const { return *calls_; }

 private:
  std::promise<void> released_;
  bool is_released_ = false;
  std::shared_ptr<std::atomic<int>> calls_ = std::make_shared<std::atomic<int>>(0);
};

TEST(Connecting, TriesTheOtherFamilyWhereOneRefuses) {
  const Listener server;
  for (const auto& families : {std::pair{AF_INET6, AF_INET}, std::pair{AF_INET, AF_INET6}}) {
    const auto connected = connect_by(resolves_to(
        {address_on(families.first, server.port()), address_on(families.second, server.port())}));
    EXPECT_TRUE(connected && *connected) << (connected ? "too late" : connected.error());
  }
}

TEST(Connecting, AnAddressThatDoesNotAnswerLeavesTimeForTheNext) {
  // Its queue is full: the kernel drops what else would connect.
  const Listener deaf(0);
  std::vector<std::unique_ptr<Transport>> queue;
  std::vector<std::unique_ptr<Connecting>> more;
  for (int i = 0; i < 4; ++i) {
    auto connecting = begin_connecting({.host = "127.0.0.1", .port = deaf.port()}, kPatience);
    ASSERT_TRUE(connecting);
    auto connected = (*connecting)->get(100ms, {});
    if (connected && !*connected) more.push_back(*std::move(connecting));
    if (connected && *connected) queue.push_back(*std::move(connected));
  }
  ASSERT_FALSE(more.empty()) << "its queue never fills";
  const Listener server;
  const TimePoint begin = Carrier::current().now();
  const auto connected = connect_by(
      resolves_to({address_on(AF_INET, deaf.port()), address_on(AF_INET, server.port())}), 200ms);
  EXPECT_TRUE(connected && *connected) << (connected ? "too late" : connected.error());
  EXPECT_GE(Carrier::current().now() - begin, 100ms) << "its share";
}

TEST(Connecting, WaitsForRoomInTheQueueOfAUnixSocket) {
  const auto path =
      std::filesystem::temp_directory_path() / ("lockbench-queue-" + std::to_string(getpid()));
  std::filesystem::remove(path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const OwnedSocket server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(server.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(server.fd(), 0), 0);
  std::vector<std::unique_ptr<Transport>> queue;
  std::unique_ptr<Connecting> waits;
  for (int i = 0; i < 4 && !waits; ++i) {
    auto connecting = begin_connecting({.host = {}, .path = path.string()}, kPatience).value();
    auto connected = connecting->get(Duration::zero(), {});
    ASSERT_TRUE(connected) << connected.error();
    if (*connected) {
      queue.push_back(*std::move(connected));
    } else {
      waits = std::move(connecting);
    }
  }
  ASSERT_TRUE(waits) << "its queue never fills";
  const OwnedSocket accepted(::accept4(server.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  const auto connected = waits->get(kPatience, {});
  std::filesystem::remove(path);
  ASSERT_TRUE(connected) << connected.error();
  EXPECT_TRUE(*connected) << waits->too_late(kPatience);
}

TEST(Connecting, AConnectionThatARouterForgotEndsByItself) {
  const Listener server;
  const auto connected = connect_by(resolves_to({address_on(AF_INET, server.port())}));
  ASSERT_TRUE(connected && *connected) << (connected ? "too late" : connected.error());
  const auto option = [&](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt((*connected)->descriptor(), level, name, &value, &size), 0);
    return value;
  };
  EXPECT_NE(option(SOL_SOCKET, SO_KEEPALIVE), 0);
  const int silence = option(IPPROTO_TCP, TCP_KEEPIDLE) +
                      option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT);
  EXPECT_LE(silence, 15) << "seconds";
}

TEST(Connecting, NamesEveryAddressThatFailed) {
  std::uint16_t closed = 0;
  { closed = Listener().port(); }
  const auto connected =
      connect_by(resolves_to({address_on(AF_INET, closed), address_on(AF_INET6, closed)}));
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error(), AllOf(HasSubstr("127.0.0.1: "), HasSubstr("; ::1: ")));
}

TEST(Connecting, ALookupThatHangsEndsWithTheTimeoutAndWithAStop) {
  HangingResolver hanging;
  auto connecting = begin_connecting({.host = "hangs.example", .port = 1}, kPatience, nullptr,
                                     hanging.resolver());
  ASSERT_TRUE(connecting);
  const auto late = (*connecting)->get(20ms, {});
  ASSERT_TRUE(late) << late.error();
  EXPECT_FALSE(*late);
  EXPECT_THAT((*connecting)->too_late(20ms),
              AllOf(HasSubstr("no connection within 20ms"), HasSubstr("being looked up")));
  std::stop_source stop;
  auto getting = std::async(std::launch::async,
                            [&] { return (*connecting)->get(2 * kPatience, stop.get_token()); });
  stop.request_stop();
  ASSERT_EQ(getting.wait_for(kPatience), std::future_status::ready);
  const auto stopped = getting.get();
  ASSERT_TRUE(stopped) << stopped.error();
  EXPECT_FALSE(*stopped);
}

TEST(Connecting, IsGivenAMomentWhenItBeginsAfterTheStop) {
  const Listener server;
  // Its polls see nothing after a stop, as where the server is far away.
  const ScriptedCarrier carrier;
  std::stop_source stop;
  stop.request_stop();
  const SocketAddress address{.host = "127.0.0.1", .port = server.port()};
  const auto connected = connect_socket(address, {kPatience, kPatience}, stop.get_token());
  EXPECT_TRUE(connected) << connected.error();
  // Nobody shakes hands.
  const TlsSettings settings;
  const auto silent = connect_socket(address, kPatience, stop.get_token(), &settings);
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error(), "stopped while connecting");
  EXPECT_LE(carrier.polled_for, Timeouts::kAfterStop);
}

TEST(Connecting, LookupsOfOneHostShareAThread) {
  HangingResolver hanging;
  const Resolver resolver = hanging.resolver();
  std::vector<std::shared_ptr<Lookup>> lookups;
  lookups.reserve(50);
  for (int i = 0; i < 50; ++i) lookups.push_back(look_up("shared.example", 1, resolver));
  hanging.release();
  for (const auto& lookup : lookups) {
    const auto addresses = lookup->get(kPatience, {});
    ASSERT_TRUE(addresses);
    EXPECT_EQ(addresses->error(), "released");
  }
  EXPECT_EQ(hanging.calls(), 1);
}

TEST(Connecting, ALookupThatFailsSaysWhy) {
  const auto unknown =
      connect_by([](const std::string&, int) { return tl::unexpected<std::string>("no such"); });
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error(), "no such");
  const auto threw = connect_by(
      [](const std::string&, int) -> PeerAddresses { throw std::runtime_error("broken"); });
  ASSERT_FALSE(threw);
  EXPECT_THAT(threw.error(), AllOf(HasSubstr("looked up"), HasSubstr("broken")));
}

TEST(Connecting, ANumericAddressIsNotLookedUp) {
  const Listener server;
  const Resolver resolver = [](const std::string&, int) -> PeerAddresses {
    return tl::unexpected<std::string>("was looked up");
  };
  auto connecting =
      begin_connecting({.host = "127.0.0.1", .port = server.port()}, kPatience, nullptr, resolver);
  ASSERT_TRUE(connecting);
  const auto connected = (*connecting)->get(kPatience, {});
  EXPECT_TRUE(connected && *connected) << (connected ? "too late" : connected.error());
}

TEST(Lookup, KnowsThisMachineByName) {
  const auto addresses = look_up("localhost", 80)->get(kPatience, {});
  ASSERT_TRUE(addresses && *addresses) << (addresses ? addresses->error() : "too late");
  for (const PeerAddress& address : **addresses) {
    EXPECT_THAT(address.display(), testing::AnyOf("127.0.0.1", "::1"));
  }
}

}  // namespace
}  // namespace lockbench::test
