#include <gmock/gmock.h>

#include "watch/sources/sql_locks.h"

namespace lockbench::watch {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr TimePoint kNow{seconds(1000)};

std::string advisory(const std::string& key, int process, bool granted,
                     const std::string& ages = "null,null", const std::string& who = "null") {
  return R"(["advisory:)" + key + R"(","process )" + std::to_string(process) + "\",false," +
         (granted ? "true" : "false") + "," + ages + "," + who + "]";
}

SqlLook look(const std::string& lines) {
  auto read = read_locks("[" + lines + "]");
  if (!read) ADD_FAILURE() << read.error();
  return read.value_or(SqlLook{});
}

std::vector<std::string> owners(const std::vector<Party>& parties) {
  std::vector<std::string> all;
  all.reserve(parties.size());
  for (const Party& party : parties) all.push_back(party.owner);
  return all;
}

TEST(SqlLook, ReadsLocksOfBothDatabases) {
  const SqlLook read = look(
      R"(["advisory:1,2","process 7",true,true,null,2.5,"worker"],)"
      R"(["order:1","connection 8",0,0,0.0125,null,null],["job","connection 9",0,1,-5,"x",4])");
  ASSERT_THAT(read.lines, SizeIs(3));
  EXPECT_EQ(read.lines[0].name, "advisory:1,2");
  EXPECT_TRUE(read.lines[0].shared && read.lines[0].granted);
  EXPECT_EQ(read.lines[0].idle, std::chrono::milliseconds(2500));
  EXPECT_EQ(read.lines[0].who, "worker");
  EXPECT_EQ(read.lines[1].owner, "connection 8");
  EXPECT_FALSE(read.lines[1].shared || read.lines[1].granted);
  EXPECT_EQ(read.lines[1].waited, std::chrono::microseconds(12500));
  EXPECT_EQ(read.lines[2].waited, Duration::zero()) << "the clock was set back";
  EXPECT_EQ(read.lines[2].idle, std::nullopt);
}

TEST(SqlLook, LeavesOutAndCountsWhatItCannotRead) {
  const SqlLook read = look(R"(1,null,{},[],["a"],"x",["","process 7",0,1,null,null,null],)"
                            R"([1,"process 7",0,1,null,null,null],["a",7,0,1,null,null,null],)" +
                            advisory("5", 7, true, "1e300,null"));
  ASSERT_THAT(read.lines, SizeIs(1));
  EXPECT_EQ(read.lines[0].waited, std::nullopt);
  EXPECT_EQ(read.malformed, 9u);
}

TEST(SqlLook, RefusesWhatIsNoList) {
  for (const char* text : {"", "{", "{}", "null", "[1", "\xff", "7"}) {
    EXPECT_FALSE(read_locks(text)) << text;
    EXPECT_FALSE(read_tables(text)) << text;
    EXPECT_FALSE(read_table_look(text, 1)) << text;
  }
  EXPECT_FALSE(read_table_look("[[]]", 2));
  EXPECT_FALSE(read_table_look("[7]", 1));
}

TEST(SqlLook, ReadsTables) {
  const auto read =
      read_tables(R"([["s.t","`s`.`t`",1,0],["s.u","\"s\".u",false,true],["s.v"],7])");
  ASSERT_TRUE(read) << read.error();
  ASSERT_THAT(read->lines, SizeIs(2));
  EXPECT_EQ(read->lines[0].sql, "`s`.`t`");
  EXPECT_TRUE(read->lines[0].readable && !read->lines[0].has_locked_at);
  EXPECT_TRUE(!read->lines[1].readable && read->lines[1].has_locked_at);
}

TEST(SqlLook, ReadsRowsOfLockTables) {
  const auto looks = read_table_look(
      R"([[["a","me",5.5,1],["b",null,-1,null],["c","me","Infinity",null],)"
      R"(["d","me","-Infinity",null],["","me",1,1],[1,2,3,4],["e"],7,["f","me",null,null]]])",
      1);
  ASSERT_TRUE(looks) << looks.error();
  const SqlTableLook& read = looks->front();
  ASSERT_THAT(read.lines, SizeIs(3));
  EXPECT_EQ(read.lines[0].left, std::chrono::milliseconds(5500));
  EXPECT_EQ(read.lines[0].held, seconds(1));
  EXPECT_EQ(read.lines[1].left, seconds(-1));
  EXPECT_EQ(read.lines[2].left, std::nullopt);
  EXPECT_EQ(read.malformed, 6u);
}

TEST(SqlBook, TellsWhoHoldsAndWhoWaitsInOrder) {
  SqlBook book({.locks = {"*"}}, 100);
  const auto seen = book.locks(
      look(advisory("1", 12, false, "1.0,null") + "," + advisory("1", 11, false, "2.0,null") + "," +
           advisory("1", 10, true, "null,9.0")),
      kNow);
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_THAT(owners(seen[0].holders), ElementsAre("process 10"));
  EXPECT_THAT(owners(*seen[0].waiting), ElementsAre("process 11", "process 12"));
  EXPECT_EQ(seen[0].waiting->front().since, kNow - seconds(2));
  EXPECT_EQ(seen[0].holders[0].since, kNow - seconds(9));
  EXPECT_TRUE(seen[0].first_look);
  EXPECT_EQ(seen[0].changes, 0u);
}

TEST(SqlBook, TellsWhoAHolderIsAsFarAsItMaySee) {
  SqlBook book({.locks = {"*"}, .exclude = {"*:3"}}, 100);
  const auto seen = book.locks(look(advisory("1", 10, true, "null,null", R"("worker, 10.0.0.7")") +
                                    "," + advisory("2", 11, true) + "," + advisory("3", 12, true)),
                               kNow);
  ASSERT_THAT(seen, SizeIs(2)) << "one is excluded";
  EXPECT_EQ(seen[0].holders[0].about, "process 10 (worker, 10.0.0.7)");
  EXPECT_EQ(seen[1].holders[0].about, "process 11");
}

TEST(SqlBook, TellsOnceThatALockIsFree) {
  SqlBook book({.locks = {"*"}}, 100);
  book.locks(look(advisory("1", 10, true)), kNow);
  const auto seen = book.locks(look(""), kNow + seconds(1));
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_THAT(seen[0].holders, IsEmpty());
  EXPECT_FALSE(seen[0].first_look);
  EXPECT_THAT(book.locks(look(""), kNow + seconds(2)), IsEmpty());
}

TEST(SqlBook, GuessesNoBeginningOfWhatBeganAfterTheFirstLook) {
  SqlBook book({.locks = {"*"}}, 100);
  book.locks(look(""), kNow);
  const auto seen = book.locks(look(advisory("1", 10, true, "null,9.0")), kNow + seconds(1));
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].holders[0].since, std::nullopt);
}

TEST(SqlBook, HasABound) {
  SqlBook book({.locks = {"*"}}, 1);
  EXPECT_THAT(book.locks(look(advisory("1", 10, true) + "," + advisory("2", 10, true)), kNow),
              SizeIs(1));
  EXPECT_EQ(book.take_left_out(), 1u);
  EXPECT_EQ(book.take_left_out(), 0u);
}

TEST(SqlBook, WhatACutLookLeavesOutIsFreeOnlyIfItStaysAway) {
  SqlBook book({.locks = {"*"}}, 100);
  const SqlLook both = look(advisory("1", 10, true) + "," + advisory("2", 11, true));
  SqlLook cut = look(advisory("1", 10, true));
  cut.cut = true;
  book.locks(both, kNow);
  EXPECT_THAT(book.locks(cut, kNow + seconds(1)), SizeIs(1));
  EXPECT_THAT(book.locks(both, kNow + seconds(2)), SizeIs(2));
  for (int second = 3; second < 12; ++second) {
    EXPECT_THAT(book.locks(cut, kNow + seconds(second)), SizeIs(1)) << second;
  }
  const auto gone = book.locks(cut, kNow + seconds(12));
  ASSERT_THAT(gone, SizeIs(2));
  EXPECT_EQ(gone[1].lock, "advisory:2");
  EXPECT_THAT(gone[1].holders, IsEmpty());
  EXPECT_EQ(gone[1].at, kNow + seconds(2)) << "it was seen last then";
  EXPECT_THAT(book.locks(cut, kNow + seconds(13)), SizeIs(1));
}

SqlRow row(const char* name, Duration left, Duration held = seconds(0)) {
  return {.name = name, .owner = "me", .left = left, .held = held};
}

TEST(SqlBook, RowsThatACutLookLeavesOutAreNotFree) {
  SqlBook book({.locks = {"*"}}, 100);
  const SqlTableLook both{.lines = {row("a", seconds(60)), row("b", seconds(60))}};
  const SqlTableLook cut{.lines = {row("a", seconds(59))}, .cut = true};
  const SqlTableLook one{.lines = {row("a", seconds(58))}};
  book.rows("t", both, kNow, kNow);
  EXPECT_THAT(book.rows("t", cut, kNow + seconds(1), kNow + seconds(1)), SizeIs(1));
  const auto seen = book.rows("t", one, kNow + seconds(2), kNow + seconds(2));
  ASSERT_THAT(seen, SizeIs(2));
  EXPECT_EQ(seen[1].lock, "t:b");
  EXPECT_EQ(seen[1].ended, Ending::released);
}

TEST(SqlBook, ASlowLookMovesNeitherBeginningNorEnd) {
  SqlBook book({.locks = {"*"}}, 100);
  // Held for a minute from kNow on; the server looks shortly before it answers.
  const auto told = [&](Duration asked, Duration answered, Duration until = seconds(60)) {
    const SqlTableLook one{.lines = {row("a", until - answered, answered)}};
    return book.rows("t", one, kNow + asked, kNow + answered).front();
  };
  const auto end = [](const Sighting& seen) { return seen.at + *seen.ttl_left; };
  const Sighting slow = told(seconds(1), seconds(4)), quick = told(seconds(5), seconds(5)),
                 slow_again = told(seconds(6), seconds(9));
  for (const Sighting& later : {quick, slow_again}) {
    EXPECT_EQ(later.holders[0].since, slow.holders[0].since);
    EXPECT_EQ(end(later), end(slow));
  }
  const Sighting renewed = told(seconds(10), seconds(10), seconds(90));
  EXPECT_EQ(renewed.holders[0].since, slow.holders[0].since);
  EXPECT_EQ(end(renewed), kNow + seconds(90));
}

TEST(SqlBook, ARowThatIsKeptForItsMinimumTimeEndsEarlier) {
  SqlBook book({.locks = {"*"}}, 100);
  const auto left = [&](Duration at, Duration until) {
    const SqlTableLook look{.lines = {row("job", until - at, at)}};
    return book.rows("t", look, kNow + at, kNow + at).front();
  };
  EXPECT_EQ(left(seconds(0), seconds(600)).ttl_left, seconds(600));
  const Sighting shortened = left(seconds(3), seconds(30));
  EXPECT_EQ(shortened.ttl_left, seconds(27));
  EXPECT_EQ(shortened.holders.front().owner, "me");
}

TEST(SqlBook, TellsReleasedRowsFromExpiredOnes) {
  SqlBook book({.locks = {"*"}}, 100);
  SqlTableLook held{
      .lines = {row("kept", seconds(1)), row("freed", seconds(9)), row("removed", seconds(9))}};
  EXPECT_THAT(book.rows("t", held, kNow, kNow), SizeIs(3));
  SqlTableLook ended{.lines = {row("kept", seconds(-1)), row("freed", seconds(-1))}};
  const auto seen = book.rows("t", ended, kNow + seconds(2), kNow + seconds(2));
  ASSERT_THAT(seen, SizeIs(3));
  EXPECT_EQ(seen[0].lock, "t:freed");
  EXPECT_EQ(seen[0].ended, Ending::released);
  EXPECT_EQ(seen[1].lock, "t:kept");
  EXPECT_EQ(seen[1].ended, Ending::expired);
  EXPECT_EQ(seen[2].ended, Ending::released);
  book.rows("t", held, kNow + seconds(3), kNow + seconds(3));
  const auto late = book.rows("t", {}, kNow + seconds(9), kNow + seconds(9));
  ASSERT_THAT(late, SizeIs(3));
  EXPECT_EQ(late[0].ended, Ending::released);
  EXPECT_FALSE(late[1].ended) << "its end was a while ago: a look does not show it any more";
}

}  // namespace
}  // namespace lockbench::watch
