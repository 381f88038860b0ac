#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/client/single_node.h"

namespace lockbench::redis {
namespace {

using testing::HasSubstr;

/// The first answer in these bytes, which are fed in pieces of this size.
tl::expected<std::optional<Reply>, std::string> read(std::string_view bytes,
                                                     std::size_t piece = 4096) {
  ReplyReader reader;
  auto reply = reader.next();
  while (reply && !*reply && !bytes.empty()) {
    const std::string_view first = bytes.substr(0, piece);
    reader.feed(first);
    bytes.remove_prefix(first.size());
    reply = reader.next();
  }
  return reply;
}

TEST(ReplyReader, ReadsEveryTypeInPiecesOfAnySize) {
  const std::string bytes =
      "*6\r\n+OK\r\n-ERR no\r\n:-12\r\n$4\r\na\r\nb\r\n$-1\r\n*2\r\n*-1\r\n*0\r\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const auto reply = read(bytes, piece);
    ASSERT_TRUE(reply && *reply) << piece;
    const std::vector<Reply>& parts = (*reply)->elements;
    ASSERT_EQ(parts.size(), 6U);
    EXPECT_TRUE(parts[0].is_text("OK"));
    EXPECT_EQ(parts[1].type, Reply::Type::error);
    EXPECT_EQ(parts[1].text, "ERR no");
    EXPECT_TRUE(parts[2].is_integer(-12));
    EXPECT_TRUE(parts[3].is_text("a\r\nb"));
    EXPECT_TRUE(parts[4].is_nil());
    ASSERT_EQ(parts[5].elements.size(), 2U);
    EXPECT_TRUE(parts[5].elements[0].is_nil());
    EXPECT_EQ(parts[5].elements[1].type, Reply::Type::array);
  }
}

TEST(ReplyReader, AnythingElseIsAnErrorAtOnce) {
  for (const std::string_view bytes :
       {"\r\n", "x\r\n", "_\r\n", ":\r\n", ":1x\r\n", ":9223372036854775808\r\n", ":+1\r\n",
        "$x\r\n", "$-2\r\n", "$1\r\nab\r\n", "*-2\r\n", "*1\r\n!\r\n", "*x\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "$1048577\r\n", "*2147483647\r\n",
        "$9223372036854775807\r\n"}) {
    EXPECT_FALSE(read(bytes)) << bytes;
  }
}

TEST(ReplyReader, AnAnswerThatNeverEndsIsAnErrorAtItsBound) {
  for (const std::string_view start : {"", "$1048576\r\n", "*16384\r\n:1\r\n$1000000\r\n"}) {
    ReplyReader reader;
    reader.feed(start);
    const std::string piece(4096, 'x');
    std::size_t fed = 0;
    while (reader.next()) {
      reader.feed(piece);
      ASSERT_LE(fed += piece.size(), std::size_t{1} << 20) << start;
    }
  }
}

TEST(Forms, TakeNothingElse) {
  const auto is = [](const auto& form, std::string_view bytes) {
    return form.read(**read(bytes)).has_value();
  };
  EXPECT_TRUE(is(kOkOrNil, "+OK\r\n") && is(kOkOrNil, "$-1\r\n"));
  EXPECT_FALSE(is(kOkOrNil, ":1\r\n") || is(kOkOrNil, "+QUEUED\r\n") || is(kOkOrNil, "*0\r\n"));
  EXPECT_TRUE(is(kFlag, ":0\r\n") && is(kFlag, ":1\r\n"));
  EXPECT_FALSE(is(kFlag, ":2\r\n") || is(kFlag, ":-1\r\n") || is(kFlag, "$1\r\n1\r\n"));
  EXPECT_FALSE(is(kCount, ":-1\r\n") || is(kCount, ":2147483648\r\n"));
  EXPECT_FALSE(is(kText, "$-1\r\n") || is(kTextOrNil, ":1\r\n"));
  // A TTL of 292 years fits no longer, nor does a sum with it.
  EXPECT_TRUE(is(kNilOrTimeLeft, ":3155760000000\r\n"));
  EXPECT_FALSE(is(kNilOrTimeLeft, ":9223372036854775807\r\n"));
  EXPECT_FALSE(is(kNilOrTimeLeft, ":-2\r\n"));
}

TEST(Forms, AreNamedBesideTheAnswer) {
  EXPECT_EQ(describe_answer("SET", **read(":1\r\n"), kOkOrNil.expected),
            "it answered SET with the integer 1, expected OK or nil");
  EXPECT_EQ(describe_answer("GET", **read("+\x1b[2J\r\n"), kTextOrNil.expected),
            "it answered GET with the status  [2J, expected text or nil");
}

TEST(Pushes, AreMessagesOrErrors) {
  const auto push = read_push(**read("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"));
  ASSERT_TRUE(push);
  EXPECT_EQ(push->kind, Push::Kind::message);
  EXPECT_EQ(push->channel, "c");
  for (const std::string_view bytes :
       {":1\r\n", "*0\r\n", "*3\r\n:1\r\n:1\r\n:1\r\n", "*3\r\n$4\r\npong\r\n$1\r\nc\r\n:1\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$-1\r\n:1\r\n"}) {
    EXPECT_FALSE(read_push(**read(bytes))) << bytes;
  }
  EXPECT_THAT(read_push(**read("-NOPERM no\r\n")).error(), HasSubstr("NOPERM"));
}

}  // namespace
}  // namespace lockbench::redis
