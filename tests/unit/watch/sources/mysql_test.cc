#include <gmock/gmock.h>

#include "watch/sources/mysql_locks.h"

namespace lockbench::watch {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr TimePoint kFirstLook{std::chrono::seconds(1000)};

SqlLook named_look(const std::string& lines) {
  auto read = read_named_locks("[" + lines + "]");
  if (!read) ADD_FAILURE() << read.error();
  return read.value_or(SqlLook{});
}

TEST(MysqlLook, ReadsHoldersAndWaiters) {
  const SqlLook read = named_look(
      R"(["order:1",7,1,null,2.5,"worker, app@10.0.0.7:4711"],["order:1",8,0,0.0125,null,null],)"
      R"(["job",0,1,null,null,null])");
  ASSERT_THAT(read.lines, SizeIs(3));
  EXPECT_EQ(read.lines[0].owner, "connection 7");
  EXPECT_TRUE(read.lines[0].granted);
  EXPECT_FALSE(read.lines[0].shared);
  EXPECT_EQ(read.lines[0].idle, std::chrono::milliseconds(2500));
  EXPECT_EQ(read.lines[0].who, "worker, app@10.0.0.7:4711");
  EXPECT_FALSE(read.lines[1].granted);
  EXPECT_EQ(read.lines[1].waited, std::chrono::microseconds(12500));
  EXPECT_EQ(read.lines[2].owner, "the server itself");
}

TEST(MysqlLook, LeavesOutAndCountsWhatItCannotRead) {
  const SqlLook read = named_look(
      R"(7,["a"],["",7,1,null,null,null],["a","7",1,null,null,null],["a",7,2,null,null,null],)"
      R"(["a",-7,1,null,null,null],["a",7,1,"x",1e300,4])");
  ASSERT_THAT(read.lines, SizeIs(1));
  EXPECT_EQ(read.lines[0].idle, std::nullopt);
  EXPECT_EQ(read.malformed, 6u);
  EXPECT_FALSE(read_named_locks("[[\"cut off"));
}

TEST(MysqlLook, NamesAndTablesAreNoPartOfItsStatement) {
  const std::string by_name =
      named_lock_look(NamedLocks::by_name, {"x'); DROP TABLE t; --", "y*", std::string(65, 'z')});
  EXPECT_THAT(by_name, Not(HasSubstr("DROP")));
  EXPECT_THAT(by_name, Not(HasSubstr("x'792a'"))) << "a pattern is no name";
  EXPECT_THAT(by_name, Not(HasSubstr("7a7a"))) << "the server refuses names of this length";
  EXPECT_THAT(by_name, HasSubstr("IS_USED_LOCK(CONVERT(x'7827293b2044524f50"));
  EXPECT_THAT(
      mysql_table_look({{.schema = "s`x", .table = "t; DROP TABLE t", .has_locked_at = true}}),
      HasSubstr("locked_at FROM `s``x`.`t; DROP TABLE t` WHERE"));
}

TEST(SqlBook, ALookThatTookTimeShowsOneHolderOfAnExclusiveLock) {
  const std::string old_one = R"(["a",7,1,null,null,null])", next = R"(["a",8,1,null,null,null])";
  // In whichever order the server shows them.
  for (const std::string& both : {old_one + "," + next, next + "," + old_one}) {
    SqlBook book({.locks = {"*"}}, 100);
    book.locks(named_look(old_one), kFirstLook);
    const auto seen = book.locks(named_look(both), kFirstLook + std::chrono::seconds(1));
    ASSERT_THAT(seen, SizeIs(1));
    ASSERT_THAT(seen[0].holders, SizeIs(1)) << both;
    EXPECT_EQ(seen[0].holders[0].owner, "connection 8");
  }
}

TEST(SqlBook, WhereALookShowsNoWaitersTheyAreUnknown) {
  SqlBook book({.locks = {"*"}}, 100);
  const auto held = book.locks(named_look(R"(["a",7,1,null,null,null])"), kFirstLook, false);
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_FALSE(held[0].waiting || held[0].waiters);
  const auto free = book.locks({}, kFirstLook + std::chrono::seconds(1), false);
  ASSERT_THAT(free, SizeIs(1));
  EXPECT_THAT(free[0].holders, IsEmpty());
  EXPECT_FALSE(free[0].waiting || free[0].waiters);
}

}  // namespace
}  // namespace lockbench::watch
