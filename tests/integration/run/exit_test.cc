#include <gtest/gtest.h>

#include "tests/folders.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

TEST(Exit, RunsNoStaticDestructorsThatAThreadMayNeed) {
  const Scratch scratch;
  Setting setting;
  setting.environment["LD_PRELOAD"] = LOCKBENCH_BINARY_DIR "/lockbench-exit-witness.so";
  const Outcome outcome = lockbench(scratch, {"--version"}, setting);
  EXPECT_EQ(outcome.signal, 0) << outcome.err;
  EXPECT_EQ(outcome.code, 0);
  expect_in(outcome.out, "lockbench ");
}

}  // namespace
}  // namespace lockbench::test
