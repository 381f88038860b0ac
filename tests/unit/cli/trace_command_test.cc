#include "loadgen/run/trace.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string made_with(const std::vector<std::string>& more) {
  std::vector<std::string> args = {"trace", "tpcc", "--out", "-", "--transactions", "200"};
  args.insert(args.end(), more.begin(), more.end());
  const Ran result = ran(args);
  EXPECT_EQ(result.code, 0) << result.err;
  return result.out;
}

TEST(TraceCommand, WritesWhatRunReads) {
  const TemporaryFile file("tpcc.csv", "");
  const Ran made =
      ran({"trace", "tpcc", "--warehouses", "2", "--transactions", "300", "--out", file.path()});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.err, StartsWith("300 transactions with "));
  const auto trace = loadgen::Trace::read(file.path());
  ASSERT_TRUE(trace) << trace.error();
  EXPECT_EQ(trace->transactions, 300U);
  EXPECT_GT(trace->keys, 160'011);
  EXPECT_LE(trace->keys, 2 * 160'011);
  EXPECT_EQ(error_of({"--trace", file.path()}), "accepted");
}

TEST(TraceCommand, OneSeedGivesTheSame) {
  const std::string first = made_with({});
  EXPECT_THAT(first, StartsWith("1,0,"));
  EXPECT_EQ(made_with({"--seed", "1"}), first);
  EXPECT_NE(made_with({"--seed", "2"}), first);
  EXPECT_NE(made_with({"--warehouses", "9", "--zipf", "1"}), first);
}

TEST(TraceCommand, SaysWhatCannotBeWritten) {
  const Ran nowhere = ran({"trace", "tpcc", "--out", "/nowhere/tpcc.csv"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("/nowhere/tpcc.csv could not be written"));
  const Ran full = ran({"trace", "tpcc", "--out", "/dev/full"});
  EXPECT_EQ(full.code, 2);
  EXPECT_THAT(full.err, HasSubstr("No space left"));
}

}  // namespace
}  // namespace lockbench::cli
