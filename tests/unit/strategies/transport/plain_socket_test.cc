#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>

#include "strategies/thread.h"
#include "strategies/transport/poller.h"
#include "strategies/transport/socket.h"
#include "tests/support/listener.h"
#include "tests/unit/strategies/transport/scripted_carrier.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

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

  /// What was received; nothing if it failed.
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

TEST_F(SharedCarrier, AnAnswerThatDoesNotComeIsNotWaitedForAnyLonger) {
  EXPECT_EQ(receive(2ms), std::nullopt);
  EXPECT_EQ(status_, Transport::Status::timed_out);
}

TEST_F(SharedCarrier, ALookDoesNotWait) {
  EXPECT_EQ(receive(Duration::zero()), std::nullopt);
  EXPECT_EQ(status_, Transport::Status::timed_out);
  answer("there");
  EXPECT_EQ(receive(Duration::zero()), "there");
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

}  // namespace
}  // namespace lockbench::test
