#include "watch/shape.h"

#include <gtest/gtest.h>

namespace lockbench::watch {
namespace {

constexpr const char* kUuid = "550e8400-e29b-41d4-a716-446655440000";

TEST(SequenceNodes, OfCurator) {
  const auto node = read_sequence_node(std::string("_c_") + kUuid + "-lock-0000000042");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->maker, kUuid);
  EXPECT_EQ(node->prefix, "lock-");
  EXPECT_EQ(node->sequence, 42U);
  EXPECT_FALSE(node->shared);
  EXPECT_TRUE(read_sequence_node(std::string("_c_") + kUuid + "-__READ__0000000002")->shared);
  EXPECT_FALSE(read_sequence_node(std::string("_c_") + kUuid + "-__WRIT__0000000002")->shared);
}

TEST(SequenceNodes, OfKazoo) {
  const auto node = read_sequence_node("0123456789abcdef0123456789abcdef__lock__0000000007");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->maker, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(node->prefix, "__lock__");
  EXPECT_EQ(node->sequence, 7U);
  EXPECT_TRUE(read_sequence_node("0123456789abcdef0123456789abcdef__rlock__0000000007")->shared);
}

TEST(SequenceNodes, Plain) {
  const auto node = read_sequence_node("lock-0000000001");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->maker, "");
  EXPECT_EQ(node->prefix, "lock-");
  EXPECT_EQ(node->sequence, 1U);
}

TEST(SequenceNodes, OtherNamesAreNone) {
  for (const char* const name : {"", "lock", "lock-1", "lock-000000001x", "lock-00000 0001"}) {
    EXPECT_FALSE(read_sequence_node(name)) << name;
  }
}

TEST(Tokens, WithAndWithoutFence) {
  EXPECT_EQ(read_token(kUuid).shape, Shape::token);
  EXPECT_EQ(read_token(kUuid).owner, kUuid);
  EXPECT_EQ(read_token("host-1:4711:thread-3").shape, Shape::token);
  const TokenValue after = read_token(std::string(kUuid) + ":17");
  EXPECT_EQ(after.shape, Shape::fenced_token);
  EXPECT_EQ(after.owner, kUuid);
  EXPECT_EQ(after.fence, 17U);
  EXPECT_EQ(read_token(std::string("17|") + kUuid).fence, 17U);
  EXPECT_EQ(read_token(std::string("\x01\x8f\xff token", 9)).shape, Shape::token);
  EXPECT_FALSE(read_token("4711:17").fence) << "a process and a thread";
}

TEST(Tokens, ACachesValueIsNone) {
  for (const std::string& value : {std::string(), std::string(R"({"id":1})"), std::string("[1,2]"),
                                   std::string("<xml/>"), std::string(300, 'x')}) {
    EXPECT_EQ(read_token(value).shape, Shape::unknown) << value;
  }
}

TEST(Uuids, WithAndWithoutDashes) {
  EXPECT_TRUE(is_uuid(kUuid));
  EXPECT_TRUE(is_uuid("0123456789abcdef0123456789abcdef"));
  EXPECT_FALSE(is_uuid("0123456789abcdef0123456789abcdeg"));
  EXPECT_FALSE(is_uuid("550e8400-e29b-41d4-a716_446655440000"));
  EXPECT_FALSE(is_uuid(""));
}

TEST(LockTables, ShedLocksColumns) {
  const auto columns = read_lock_table({"NAME", "lock_until", "locked_at", "locked_by"});
  ASSERT_TRUE(columns);
  EXPECT_EQ(columns->name, "NAME");
  EXPECT_EQ(columns->until, "lock_until");
  EXPECT_EQ(columns->by, "locked_by");
  EXPECT_FALSE(read_lock_table({"name", "lock_until"}));
  EXPECT_FALSE(read_lock_table({"name", "price", "owner"}));
}

}  // namespace
}  // namespace lockbench::watch
