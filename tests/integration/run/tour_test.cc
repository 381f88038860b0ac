#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

TEST(Tour, ShowsALockThatWorksAndHowItBreaksWithFiguresOfItsOwn) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"tour", "--duration", "300ms", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("$ lockbench run redis-set-nx-lua --clients 1 --duration 300ms\n"),
                    ContainsRegex("took the free lock [1-9]"),
                    HasSubstr("$ lockbench run redis-set-nx-lua --clients 32 --duration 300ms\n"),
                    ContainsRegex("32 clients want it at once: 0 lost updates in [1-9]"),
                    HasSubstr("$ lockbench hazards --explain pause-holding/redis-set-nx-lua\n"),
                    HasSubstr("holder is stopped"), HasSubstr("\nlost-update: "),
                    HasSubstr("$ lockbench hazards --explain pause-holding-fenced/redis-fenced\n"),
                    HasSubstr("\nsafe: the counter rejected the late write")));
  EXPECT_THAT(outcome.out.substr(outcome.out.find("What next?")),
              AllOf(HasSubstr("lockbench choose "), HasSubstr("lockbench watch ")));
  EXPECT_THAT(scratch.files(), testing::IsEmpty()) << "it saves nothing";
}

}  // namespace
}  // namespace lockbench::test
