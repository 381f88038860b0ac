#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "strategies/memcached/client/connection.h"
#include "tests/support/memcached_replies.h"

namespace lockbench::memcached {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Choice kAdd{.yes = "STORED", .no = "NOT_STORED"};

std::vector<std::string> all_replies() {
  std::vector<std::string> all = test::memcached_replies("k");
  all.emplace_back(3000, 'x');
  return all;
}

/// Expects that exactly these replies are understood, and that all others give a printable reason.
template <class Parse>
void expect_only(const std::vector<std::string>& understood, const Parse& parse) {
  for (const std::string& reply : all_replies()) {
    const auto parsed = parse(reply);
    const bool expected = std::ranges::find(understood, reply) != understood.end();
    EXPECT_EQ(parsed && parsed->has_value(), expected) << reply;
    if (expected && parsed && *parsed) {
      EXPECT_EQ((*parsed)->size, reply.size()) << reply;
    }
    if (!parsed) {
      EXPECT_LT(parsed.error().why.size(), 200U);
      EXPECT_TRUE(std::ranges::none_of(parsed.error().why, [](unsigned char c) { return c < ' '; }))
          << parsed.error().why;
    }
    // With any part of it received.
    for (std::size_t length = 0; length < std::min<std::size_t>(reply.size(), 100); ++length) {
      const auto part = parse(reply.substr(0, length));
      EXPECT_FALSE(part && part->has_value() && expected) << reply << " cut at " << length;
    }
  }
}

TEST(Replies, AChoiceIsOneOfItsWords) {
  expect_only({"STORED\r\n", "NOT_STORED\r\n"},
              [](std::string_view bytes) { return parse_choice(bytes, kAdd); });
  expect_only({"STORED\r\n", "EXISTS\r\n", "NOT_FOUND\r\n"}, [](std::string_view bytes) {
    return parse_choice(bytes, {.yes = "STORED", .no = "EXISTS", .or_no = "NOT_FOUND"});
  });
  expect_only({"STORED\r\n"},
              [](std::string_view bytes) { return parse_choice(bytes, {.yes = "STORED"}); });
  EXPECT_TRUE((*parse_choice("STORED\r\n", kAdd))->value);
  EXPECT_FALSE((*parse_choice("NOT_STORED\r\n", kAdd))->value);
}

TEST(Replies, AnItemIsTheOneAskedFor) {
  const auto parse = [](std::string_view bytes) { return parse_item(bytes, "k"); };
  expect_only({"END\r\n", "VALUE k 0 1 1\r\nx\r\nEND\r\n"}, parse);
  const auto item = parse("VALUE k 5 8 18446744073709551615\r\na\r\nEND\r\n\r\nEND\r\n");
  ASSERT_TRUE(item && *item && (*item)->value);
  EXPECT_EQ((*item)->value->value, "a\r\nEND\r\n");
  EXPECT_EQ((*item)->value->version, 18446744073709551615U);
  EXPECT_FALSE((*parse("END\r\n"))->value);
}

TEST(Replies, NothingIsReadWithoutABound) {
  EXPECT_FALSE(parse_choice(std::string(2048, 'x'), kAdd));
  EXPECT_FALSE(parse_item("VALUE k 0 1048577 1\r\n", "k"));
  EXPECT_TRUE(parse_item("VALUE k 0 1048576 1\r\n", "k"));
  std::string endless;
  for (int i = 0; i < 10'000; ++i) endless += "STAT name value\r\n";
  EXPECT_FALSE(parse_stats(endless));
}

TEST(Replies, AnErrorOfTheServerIsARefusalAndAllElseIsNoAnswer) {
  for (const char* refusal : {"ERROR\r\n", "CLIENT_ERROR x\r\n", "SERVER_ERROR x\r\n"}) {
    EXPECT_TRUE(parse_choice(refusal, kAdd).error().refused) << refusal;
    EXPECT_TRUE(parse_item(refusal, "k").error().refused) << refusal;
  }
  const auto other = parse_choice("TOUCHED \x1b[31m" + std::string(100, 'x') + "\r\n", kAdd);
  EXPECT_FALSE(other.error().refused);
  EXPECT_THAT(other.error().why,
              HasSubstr("expected STORED or NOT_STORED, got \"TOUCHED  [31mxxx"));
  EXPECT_THAT(other.error().why, HasSubstr("...\""));
}

TEST(ItemTtl, IsRoundedUpPlusTwoSecondsAndBelowMemcachedsAbsoluteTimes) {
  for (const auto& [ttl, kept] :
       {std::pair<Duration, Duration>{1ms, 1s}, {1s, 1s}, {1001ms, 2s}, {2300ms, 3s}, {24h, 24h}}) {
    const auto item = ItemTtl::of(ttl);
    ASSERT_TRUE(item);
    EXPECT_EQ(item->kept, kept);
    EXPECT_EQ(std::chrono::seconds(item->asked), kept + 2s);
  }
  EXPECT_EQ(ItemTtl::of(30 * 24h - 2s)->asked, kLongestExpiry);
  EXPECT_FALSE(ItemTtl::of(30 * 24h - 1s));
}

}  // namespace
}  // namespace lockbench::memcached
