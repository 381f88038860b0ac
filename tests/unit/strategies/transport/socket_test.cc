#include "strategies/transport/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/thread.h"
#include "strategies/transport/poller.h"
#include "tests/support/listener.h"
#include "tests/support/temporary_folder.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The test's carrier while this exists. Polls like a thread, but may run an action meanwhile and
/// give false reports.
class ScriptedCarrier : public Carrier {
 public:
  ScriptedCarrier() { set_current(this); }
  ScriptedCarrier(const ScriptedCarrier&) = delete;
  ScriptedCarrier& operator=(const ScriptedCarrier&) = delete;
  ~ScriptedCarrier() override { set_current(nullptr); }

  bool shared() const noexcept override { return true; }
  void poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) override {
    ++polls;
    polled_for = longest;
    if (false_reports > 0) {
      --false_reports;
      return;
    }
    if (const auto happens = std::exchange(meanwhile, {})) happens();
    if (stop.stop_requested()) return;
    ::poll(descriptors.data(), descriptors.size(), static_cast<int>(ceil_milliseconds(longest)));
  }
  void keep(int descriptor) override { kept.push_back(descriptor); }
  void forget(int descriptor) noexcept override { std::erase(kept, descriptor); }
  void yield() override {}

  std::unique_ptr<Event> make_event() override { throw std::logic_error("no events here"); }
  WaitResult wait(Event*, TimePoint, const std::stop_token&) override {
    throw std::logic_error("no waits here");
  }
  tl::expected<std::unique_ptr<Task>, std::string> start(Body, OnFailure) override {
    throw std::logic_error("no tasks here");
  }

  int polls = 0;
  Duration polled_for{};  ///< longest wait that the latest poll allowed
  int false_reports = 0;
  std::function<void()> meanwhile;  ///< runs once
  std::vector<int> kept;
};

class SharedCarrier : public testing::Test {
 protected:
  SharedCarrier() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw std::runtime_error("no sockets");
    }
    fd_ = ends[0];
    peer_ = OwnedSocket(ends[1]);
    carrier_.emplace();
    socket_ = make_plain_socket(OwnedSocket(fd_), false, Timeouts::kAfterStop).value();
  }
  ~SharedCarrier() override { socket_.reset(); }

  void answer(std::string_view bytes) {
    ASSERT_EQ(::write(peer_.fd(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
  }

  /// The received bytes; nothing if it failed.
  std::optional<std::string> receive(Duration longest = kPatience, std::size_t room = 64,
                                     const std::stop_token& stop = {}) {
    std::string bytes(room, '\0');
    const auto [status, count] = socket_->receive(bytes, longest, stop);
    status_ = status;
    if (status != Transport::Status::ok) return std::nullopt;
    bytes.resize(count);
    return bytes;
  }

  int fd_ = -1;
  OwnedSocket peer_;
  std::optional<ScriptedCarrier> carrier_;
  std::unique_ptr<Transport> socket_;
  Transport::Status status_ = Transport::Status::ok;
};

TEST_F(SharedCarrier, ASocketIsKeptFromBeginningToEnd) {
  EXPECT_THAT(carrier_->kept, ElementsAre(fd_));
  socket_.reset();
  EXPECT_THAT(carrier_->kept, IsEmpty());
}

TEST_F(SharedCarrier, AnAnswerIsWaitedForUntilItIsReallyThere) {
  carrier_->false_reports = 2;
  carrier_->meanwhile = [this] { answer("late"); };
  EXPECT_EQ(receive(), "late");
  EXPECT_EQ(carrier_->polls, 3);
}

TEST_F(SharedCarrier, ASocketIsQuietUntilItsPeerSendsOrCloses) {
  EXPECT_TRUE(socket_->is_quiet());
  answer("x");
  EXPECT_FALSE(socket_->is_quiet());
  EXPECT_TRUE(socket_->is_quiet());
  peer_ = OwnedSocket();
  EXPECT_FALSE(socket_->is_quiet());
  EXPECT_EQ(carrier_->polls, 0);
}

TEST_F(SharedCarrier, WhatAPollMayNotShowAgainIsReceivedWithoutOne) {
  answer("12345678");
  EXPECT_EQ(receive(kPatience, 4), "1234");
  const int polls = carrier_->polls;
  EXPECT_EQ(socket_->descriptor(), -1) << "the rest is there already";
  EXPECT_EQ(receive(kPatience, 4), "5678");
  EXPECT_EQ(receive(Duration::zero()), std::nullopt);
  EXPECT_EQ(socket_->descriptor(), fd_);
  answer("polled for by somebody else");
  EXPECT_EQ(receive(), "polled for by somebody else");
  EXPECT_EQ(carrier_->polls, polls);
}

TEST_F(SharedCarrier, AnAnswerUnderWayMayStillComeAfterAStop) {
  std::stop_source stop;
  carrier_->meanwhile = [&] {
    stop.request_stop();
    carrier_->meanwhile = [this] { answer("under way"); };
  };
  EXPECT_EQ(receive(kPatience, 64, stop.get_token()), "under way");
  EXPECT_EQ(receive(kPatience, 64, stop.get_token()), std::nullopt);
  EXPECT_EQ(status_, Transport::Status::stopped);
  EXPECT_LE(carrier_->polled_for, Timeouts::kAfterStop);
  answer("for the next command");
  EXPECT_EQ(receive(), "for the next command");
}

TEST_F(SharedCarrier, TheEndOfAConnectionEndsTheWait) {
  carrier_->meanwhile = [this] { peer_ = OwnedSocket(); };
  EXPECT_EQ(receive(), std::nullopt);
  EXPECT_EQ(status_, Transport::Status::closed);
}

TEST_F(SharedCarrier, ASocketIsKeptWhereItWasWaitedForLast) {
  ScriptedCarrier other;
  other.meanwhile = [this] { answer("to another thread's fiber"); };
  EXPECT_EQ(receive(), "to another thread's fiber");
  EXPECT_THAT(carrier_->kept, IsEmpty());
  EXPECT_THAT(other.kept, ElementsAre(fd_));
  socket_.reset();
  EXPECT_THAT(other.kept, IsEmpty());
}

TEST_F(SharedCarrier, SendingWaitsForRoomOnlyIfItMay) {
  const std::string much(std::size_t{4} << 20U, 'x');
  EXPECT_EQ(socket_->send(much, Duration::zero()), Transport::Status::timed_out);
  EXPECT_EQ(carrier_->polls, 0);
  EXPECT_EQ(socket_->send("x", 2ms), Transport::Status::timed_out);
  carrier_->meanwhile = [this] {
    std::array<char, 65536> bytes;
    while (::recv(peer_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  };
  EXPECT_EQ(socket_->send("x", kPatience), Transport::Status::ok);
}

TEST_F(SharedCarrier, ASocketMayPassToAThreadOfItsOwn) {
  answer("to a fiber");
  EXPECT_EQ(receive(), "to a fiber");
  std::optional<std::string> received;
  auto thread = Thread::start(
      [&](const std::stop_token&) {
        answer("to a thread");
        received = receive();
      },
      [](const std::string& why) { ADD_FAILURE() << why; });
  ASSERT_TRUE(thread) << thread.error();
  thread->finish();
  EXPECT_EQ(received, "to a thread");
  EXPECT_EQ(carrier_->polls, 1);
}

TEST_F(SharedCarrier, APollerWaitsForItsWholeSetThere) {
  const auto poller = Poller::make().value();
  poller->watch(fd_, 7);
  EXPECT_THAT(poller->wait(Duration::zero()), IsEmpty());
  carrier_->meanwhile = [this] { answer("x"); };
  EXPECT_THAT(poller->wait(kPatience), ElementsAre(7));
  EXPECT_EQ(carrier_->polls, 2);
}

/// Two ends of a connection.
struct Pair {
  Pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    for (const int end : ends) ::close(end);
  }
  void say_something() { EXPECT_EQ(::write(ends[1], "x", 1), 1); }

  std::array<int, 2> ends{};
};

class PollerTest : public testing::Test {
 protected:
  std::vector<std::uint64_t> wait(Duration longest = kPatience) {
    const auto tags = poller_->wait(longest);
    return {tags.begin(), tags.end()};
  }

  std::unique_ptr<Poller> poller_ = Poller::make().value();
};

TEST_F(PollerTest, ReportsEachConnectionOnce) {
  Pair one, other;
  poller_->watch(one.ends[0], 1);
  poller_->watch(other.ends[0], 2);
  one.say_something();
  EXPECT_THAT(wait(), ElementsAre(1));
  EXPECT_THAT(wait(Duration::zero()), IsEmpty()) << "its input is still there";
  poller_->watch(one.ends[0], 3);
  EXPECT_THAT(wait(), ElementsAre(3));
  ::shutdown(other.ends[1], SHUT_RDWR);
  EXPECT_THAT(wait(), ElementsAre(2)) << "closed";
}

TEST_F(PollerTest, ForgetsWhatIsNotWatchedAnyMore) {
  Pair pair;
  poller_->watch(pair.ends[0], 1);
  poller_->unwatch(pair.ends[0]);
  pair.say_something();
  EXPECT_THAT(wait(Duration::zero()), IsEmpty());
  poller_->watch(-1, 1);
  poller_->unwatch(-1);
}

TEST_F(PollerTest, IsWokenByAnotherThread) {
  const std::jthread waker([this] { poller_->wake(); });
  EXPECT_THAT(wait(Duration::max()), IsEmpty());
  EXPECT_THAT(wait(Duration::zero()), IsEmpty());
}

TEST(Poller, SaysWhyThereIsNone) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto poller = Poller::make();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_FALSE(poller);
  EXPECT_THAT(poller.error(), testing::HasSubstr("Too many open files"));
}

using Connected = tl::expected<std::unique_ptr<Transport>, std::string>;

Connected connect_by(const Resolver& resolver, Duration time_to_connect = kPatience,
                     const SocketAddress& server = {.host = "db.example", .port = 1}) {
  auto connecting = begin_connecting(server, time_to_connect, nullptr, resolver);
  if (!connecting) return tl::unexpected(connecting.error());
  return (*connecting)->get(kPatience, {});
}

Resolver resolves_to(std::vector<PeerAddress> addresses) {
  return [addresses](const std::string& /*host*/, int /*port*/) { return addresses; };
}

/// Resolves nothing until told to.
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
  // Its queue is full, so the kernel drops further connections.
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
  const TemporaryFolder folder;
  const std::string path = (folder / "queue").string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const OwnedSocket server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(server.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(server.fd(), 0), 0);
  std::vector<std::unique_ptr<Transport>> queue;
  std::unique_ptr<Connecting> waits;
  for (int i = 0; i < 4 && !waits; ++i) {
    auto connecting = begin_connecting({.host = {}, .path = path}, kPatience).value();
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
  // Its polls see nothing after a stop, as with a distant server.
  const ScriptedCarrier carrier;
  std::stop_source stop;
  stop.request_stop();
  const SocketAddress address{.host = "127.0.0.1", .port = server.port()};
  const auto connected = connect_socket(address, {kPatience, kPatience}, stop.get_token());
  EXPECT_TRUE(connected) << connected.error();
  // The server does not answer the handshake.
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
  const auto connected =
      connect_by(resolver, kPatience, {.host = "127.0.0.1", .port = server.port()});
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
