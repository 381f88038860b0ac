// Requests are tested on real servers: tests/conformance/zookeeper.

#include "strategies/zookeeper/client/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace lockbench::zookeeper {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// "00 01" as bytes; spaces are ignored.
std::string bytes(std::string_view hex) {
  std::string digits, bytes;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return bytes;
}

// Metadata of a node created by transaction 0x102 at 3 ms, with owner 0x77.
constexpr std::string_view kStat =
    "0000000000000102 0000000000000103 0000000000000003 0000000000000004 "
    "00000001 00000002 00000000 0000000000000077 00000000 00000000 0000000000000105";

template <class T>
std::string error_of(const tl::expected<T, std::string>& parsed) {
  return parsed ? "accepted" : parsed.error();
}

Parsed<Reply> reply_to(Request::Kind kind, const std::string& path, const std::string& body,
                       std::string_view chroot = {}) {
  Reader from(body);
  return read_reply({kind, path}, chroot, from);
}

TEST(ZookeeperGreeting, GrantsASessionOrEndsIt) {
  const auto granted = read_greeting(bytes("00000000 000003e8 0000000000001234 00000002 7077 00"));
  ASSERT_TRUE(granted) << granted.error();
  EXPECT_EQ(granted->timeout, milliseconds(1000));
  EXPECT_EQ(granted->id, 0x1234);
  EXPECT_EQ(granted->password, "pw");
  EXPECT_FALSE(granted->read_only);
  EXPECT_TRUE(read_greeting(bytes("00000000 000003e8 0000000000001234 00000000 01"))->read_only);
  EXPECT_TRUE(read_greeting(bytes("00000000 000003e8 0000000000001234 00000000")))
      << "an old server's";
  const auto over = read_greeting(bytes("00000000 00000000 0000000000000000 00000000 00"));
  ASSERT_TRUE(over) << over.error();
  EXPECT_LE(over->timeout, milliseconds(0));
}

TEST(ZookeeperReplies, TellOfNoNodeThatWasNotAskedFor) {
  const auto made = [](Request::Kind kind, std::string_view asked, std::string_view path) {
    return error_of(
        reply_to(kind, std::string(asked), Writer().put(path).framed().substr(4) + bytes(kStat)));
  };
  using Kind = Request::Kind;
  EXPECT_EQ(made(Kind::make, "/l/n", "/l/n"), "accepted");
  EXPECT_EQ(made(Kind::make_sequential, "/l/n-", "/l/n-0000000001"), "accepted");
  for (const std::string_view path : {"", "/", "/l", "/l/n-", "/l/n-1", "/l/m-0000000001",
                                      "/l/n-x/0000000001", "/l/n-00000000x1"}) {
    EXPECT_THAT(made(Kind::make_sequential, "/l/n-", path), HasSubstr("does not make sense"))
        << path;
    EXPECT_THAT(made(Kind::make, "/l/n", path), HasSubstr("does not make sense")) << path;
  }
}

TEST(ZookeeperEvents, TellWhatWasDeletedOrChanged) {
  const auto event = [](std::string_view hex, std::string_view chroot) {
    const std::string body = bytes(hex);
    Reader from(body);
    return read_event(from, chroot);
  };
  const auto deleted = event("00000002 00000003 00000004 2f632f6e", "/c");
  ASSERT_TRUE(deleted) << deleted.error();
  EXPECT_TRUE(deleted->deleted);
  EXPECT_EQ(deleted->path, "/n");
  EXPECT_FALSE(event("00000003 00000003 00000002 2f6e", "")->deleted);
  EXPECT_EQ(event("00000003 00000003 00000002 2f63", "/c")->path, "/");
  for (const std::string_view wrong :
       {"", "00000002", "00000002 00000003 00000002 2f6e 00", "00000063 00000003 00000002 2f6e",
        "ffffffff 00000003 00000000", "00000002 00000003 00000003 2f6376"}) {
    EXPECT_THAT(error_of(event(wrong, "/c")), HasSubstr("does not make sense")) << wrong;
  }
}

TEST(ZookeeperErrors, SayWhatMayHaveHappened) {
  EXPECT_FALSE(is_lost(Code{-102})) << "no permission";
  EXPECT_TRUE(is_lost(Code::connection_loss));
  EXPECT_TRUE(is_lost(Code{-7})) << "timeout";
  EXPECT_TRUE(is_lost(Code{12345})) << "no code at all";
  EXPECT_FALSE(is_usual(Code{-102}));
  EXPECT_EQ(describe(Code{-9999}), "error -9999");
}

TEST(ZookeeperPaths, EveryKeyHasANodeBelowItsRun) {
  EXPECT_EQ(run_path("20261121T0125Z-4f3a"), "/lockbench/20261121T0125Z-4f3a");
  EXPECT_EQ(node_of_key("lockbench:20261121T0125Z-4f3a:{7}"), "/lockbench/20261121T0125Z-4f3a/{7}");
  EXPECT_EQ(node_of_key("lockbench:r:{a}:b"), "/lockbench/r/{a}:b");
  EXPECT_EQ(node_of_key("somebody's"), "/lockbench/-/somebody's");
  EXPECT_EQ(node_of_key("lockbench:"), "/lockbench/-/lockbench:");
}

TEST(ZookeeperPaths, AnyKeyIsOneNode) {
  EXPECT_EQ(node_of_key("a/b"), "/lockbench/-/a%2Fb");
  EXPECT_NE(node_of_key("a/b"), node_of_key("a%2Fb"));
  EXPECT_EQ(node_of_key(std::string("\0\n", 2)), "/lockbench/-/%00%0A");
  EXPECT_EQ(node_of_key(".."), "/lockbench/-/%..");
  EXPECT_EQ(node_of_key(""), "/lockbench/-/%");
}

TEST(ZookeeperQueue, NumbersAreTheLastTenDigitsAndTheirSign) {
  EXPECT_EQ(sequence_of("x-0000000042"), 42);
  EXPECT_EQ(sequence_of("x-92147483647"), 2147483647) << "what is before them is the name's";
  EXPECT_EQ(sequence_of("0000000000"), 0);
  EXPECT_EQ(sequence_of("x--000000001"), -1);
  EXPECT_EQ(sequence_of("x--2147483648"), std::numeric_limits<std::int32_t>::min());
  for (const char* name : {"", "x", "x000000004", "x-00000000x2", "x-+00000001", "x-2147483648"}) {
    EXPECT_FALSE(sequence_of(name)) << name;
  }
}

TEST(ZookeeperQueue, GoesOnWhenTheNumbersWrap) {
  const std::vector<std::string> queue{"c--2147483647", "b--2147483648", "a-2147483647",
                                       "no contender"};
  const auto ahead_of = [&](std::string_view own) {
    const Place place = place_among(queue, own);
    EXPECT_TRUE(place.there) << own;
    return place.ahead.value_or("nobody");
  };
  EXPECT_EQ(ahead_of("a-2147483647"), "nobody");
  EXPECT_EQ(ahead_of("b--2147483648"), "a-2147483647");
  EXPECT_EQ(ahead_of("c--2147483647"), "b--2147483648");
}

TEST(ZookeeperVersion, IsReadFromTheAnswer) {
  EXPECT_EQ(version_in("Zookeeper version: 3.8.0-5a02a05e, built on 2022\nLatency"), "3.8.0");
  EXPECT_EQ(version_in("Zookeeper version: 3.9.1--1, built"), "3.9.1");
  EXPECT_FALSE(version_in("srvr is not executed because it is not in the whitelist."));
  EXPECT_FALSE(version_in("Zookeeper version: "));
}

}  // namespace
}  // namespace lockbench::zookeeper
