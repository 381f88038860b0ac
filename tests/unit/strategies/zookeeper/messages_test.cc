#include "strategies/zookeeper/client/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace lockbench::zookeeper {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

// Of a node: made by transaction 0x102 at 3 ms, owner 0x77.
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

TEST(Jute, ReadsWhatItWrites) {
  Writer written;
  written.put(std::int32_t{-5}).put(std::int64_t{1} << 40).put(true).put(std::string_view("abc"));
  const std::string framed = written.framed();
  EXPECT_EQ(framed, bytes("00000014 fffffffb 0000010000000000 01 00000003 616263"));
  Reader from(std::string_view(framed).substr(4));
  EXPECT_EQ(from.int32(), -5);
  EXPECT_EQ(from.int64(), std::int64_t{1} << 40);
  EXPECT_TRUE(from.boolean());
  EXPECT_FALSE(from.done());
  EXPECT_EQ(from.text(), "abc");
  EXPECT_TRUE(from.done());
}

TEST(Jute, NullIsEmpty) {
  const std::string nulls = bytes("ffffffff ffffffff");
  Reader from(nulls);
  EXPECT_EQ(from.text(), "");
  EXPECT_THAT(from.texts(), IsEmpty());
  EXPECT_TRUE(from.done());
}

TEST(Jute, WhatDoesNotFitReadsAsNothingFromThenOn) {
  for (const std::string_view wrong :
       {"", "000000", "00000002 61", "fffffffe 6161", "7fffffff 61", "80000000 61"}) {
    const std::string text = bytes(wrong);
    Reader from(text);
    EXPECT_EQ(from.text(), "") << wrong;
    EXPECT_FALSE(from.ok()) << wrong;
    EXPECT_EQ(from.int64(), 0) << wrong;
    EXPECT_FALSE(from.done()) << wrong;
  }
}

TEST(Jute, AListIsAsLongAsItsBytesAllow) {
  const std::string two = bytes("00000002 00000001 61 00000000");
  Reader right(two);
  EXPECT_THAT(right.texts(), ElementsAre("a", ""));
  EXPECT_TRUE(right.done());
  // Two thousand millions, and one more than there is room for.
  for (const std::string_view wrong : {"7fffffff 00000000", "00000002 00000000", "fffffff0"}) {
    const std::string text = bytes(wrong);
    Reader from(text);
    EXPECT_THAT(from.texts(), IsEmpty()) << wrong;
    EXPECT_FALSE(from.ok()) << wrong;
  }
}

TEST(ZookeeperRequests, AreAsTheProtocolSays) {
  EXPECT_EQ(greet({}, milliseconds(600)),
            bytes("0000002d 00000000 0000000000000000 00000258 0000000000000000 "
                  "00000010 00000000000000000000000000000000 00"));
  EXPECT_EQ(greet({.id = 0x1234, .password = "pw", .seen = 9}, milliseconds(1)),
            bytes("0000001f 00000000 0000000000000009 00000001 0000000000001234 "
                  "00000002 7077 00"));
  EXPECT_EQ(ping(), bytes("00000008 fffffffe 0000000b"));
  EXPECT_EQ(end_session(7), bytes("00000008 00000007 fffffff5"));
  EXPECT_EQ(authenticate("a", "b"),
            bytes("0000001d fffffffc 00000064 00000000 00000006 646967657374 00000003 613a62"));
  const std::array<std::string, 1> paths{"/n"};
  EXPECT_EQ(set_watches(5, "/c", paths), bytes("00000024 fffffff8 00000065 0000000000000005 "
                                               "00000001 00000004 2f632f6e 00000000 00000000"));
}

TEST(ZookeeperRequests, NameTheirPathBelowTheRoot) {
  using Kind = Request::Kind;
  EXPECT_EQ(write(1, {Kind::exists, "/"}, "", false),
            bytes("0000000e 00000001 00000003 00000001 2f 00"));
  EXPECT_EQ(write(1, {Kind::exists, "/"}, "/c", false),
            bytes("0000000f 00000001 00000003 00000002 2f63 00"));
  EXPECT_EQ(write(2, {Kind::look, "/n"}, "/c", false),
            bytes("00000011 00000002 00000004 00000004 2f632f6e 01"));
  EXPECT_EQ(write(2, {Kind::children, "/n"}, "", false),
            bytes("0000000f 00000002 00000008 00000002 2f6e 00"));
  EXPECT_EQ(write(2, {Kind::sync, "/n"}, "/c", false),
            bytes("00000010 00000002 00000009 00000004 2f632f6e"));
  EXPECT_EQ(write(3, {Kind::remove, "/n"}, "", false),
            bytes("00000012 00000003 00000002 00000002 2f6e ffffffff"));
}

TEST(ZookeeperRequests, MakeNodesForEverybodyOrForTheUser) {
  using Kind = Request::Kind;
  constexpr std::string_view kWorld = "00000005 776f726c64 00000006 616e796f6e65";
  constexpr std::string_view kUser = "00000004 61757468 00000000";
  const auto made = [](std::string_view head, std::string_view owner, std::string_view mode) {
    return bytes(head) + bytes("00000002 2f6e 00000000 00000001 0000001f") + bytes(owner) +
           bytes(mode);
  };
  EXPECT_EQ(write(1, {Kind::make_sequential, "/n"}, "", false),
            made("00000031 00000001 0000000f", kWorld, "00000003"));
  EXPECT_EQ(write(1, {Kind::make_ephemeral, "/n"}, "", true),
            made("0000002a 00000001 0000000f", kUser, "00000001"));
  EXPECT_EQ(write(1, {Kind::make, "/n"}, "", true),
            made("0000002a 00000001 00000013", kUser, "00000004"));
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

TEST(ZookeeperGreeting, IsNothingElse) {
  for (const std::string_view wrong :
       {"", "00000000 000003e8", "00000001 000003e8 0000000000001234 00000000 00",
        "00000000 000003e8 0000000000001234 7fffffff 00",
        "00000000 000003e8 0000000000001234 00000000 00 00",
        "00000000 000003e8 0000000000000000 00000000 00"}) {
    EXPECT_THAT(error_of(read_greeting(bytes(wrong))), HasSubstr("does not make sense")) << wrong;
  }
}

TEST(ZookeeperReplies, TellOfANodeThatWasMade) {
  const auto made =
      reply_to(Request::Kind::make_sequential, "/l/t-",
               bytes("00000011 2f632f6c2f742d30303030303030303432") + bytes(kStat), "/c");
  ASSERT_TRUE(made) << made.error();
  EXPECT_EQ(made->path, "/l/t-0000000042");
  EXPECT_EQ(made->created_by, 0x102);
  EXPECT_EQ(made->made_at_ms, 3);
  EXPECT_EQ(made->owner, 0x77);
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

TEST(ZookeeperReplies, TellOfChildrenAndMetadata) {
  const auto list =
      reply_to(Request::Kind::children, "/l", bytes("00000002 00000001 61 00000001 62"));
  ASSERT_TRUE(list) << list.error();
  EXPECT_THAT(list->children, ElementsAre("a", "b"));
  const auto seen = reply_to(Request::Kind::look, "/l", bytes("ffffffff") + bytes(kStat));
  ASSERT_TRUE(seen) << seen.error();
  EXPECT_EQ(seen->owner, 0x77);
  EXPECT_TRUE(reply_to(Request::Kind::exists, "/l", bytes(kStat)));
  EXPECT_TRUE(reply_to(Request::Kind::remove, "/l", ""));
  EXPECT_TRUE(reply_to(Request::Kind::sync, "/l", bytes("00000004 2f632f6c"), "/c"));
}

TEST(ZookeeperReplies, AreNothingElse) {
  using Kind = Request::Kind;
  const std::string stat = bytes(kStat);
  for (const Kind kind : {Kind::make, Kind::make_ephemeral, Kind::make_sequential, Kind::children,
                          Kind::look, Kind::exists, Kind::sync, Kind::remove}) {
    for (const std::string& wrong :
         {std::string("x"), stat + "x", stat.substr(1), bytes("7fffffff"), bytes("fffffff0"),
          bytes("00000001 00000003 612f62"), bytes("00000001 00000000")}) {
      EXPECT_THAT(error_of(reply_to(kind, "/l", wrong)), HasSubstr("does not make sense"))
          << name_of(kind) << " " << wrong.size();
    }
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

}  // namespace
}  // namespace lockbench::zookeeper
