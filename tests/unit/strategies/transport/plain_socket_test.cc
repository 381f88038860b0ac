#include "strategies/transport/plain_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <stop_token>
#include <string_view>

#include "tests/support/listener.h"

namespace lockbench::test {
namespace {

TEST(PlainSocket, ACommandWithoutAStopIsNotCutByThatOfTheOneBefore) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const OwnedSocket peer(ends[1]);
  const auto socket = make_plain_socket(OwnedSocket(ends[0]), false, kPatience).value();
  const auto answer = [&](std::string_view bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    return ::send(peer.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == size;
  };
  std::array<char, 64> buffer{};
  std::stop_source stop;
  ASSERT_TRUE(answer("to the first"));
  EXPECT_EQ(socket->receive(buffer, kPatience, stop.get_token()).status, Transport::Status::ok);
  // The second is under way when the first one's stop comes.
  EXPECT_EQ(socket->receive(buffer, Duration::zero(), {}).status, Transport::Status::timed_out);
  stop.request_stop();
  EXPECT_TRUE(socket->usable());
  EXPECT_TRUE(answer("to the second"));
  EXPECT_EQ(socket->receive(buffer, kPatience, {}).status, Transport::Status::ok);
  // The third has that stop again.
  EXPECT_EQ(socket->receive(buffer, kPatience, stop.get_token()).status,
            Transport::Status::stopped);
}

}  // namespace
}  // namespace lockbench::test
