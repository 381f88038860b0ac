#include <gtest/gtest.h>

#include "tests/folders.h"
#include "tests/support/output_of.h"

namespace lockbench {
namespace {

using test::output_of;

TEST(ProbeUnit, IsRatedBelowThree) {
  const auto [text, status] = output_of(
      "systemd-analyze security --offline=true --no-pager --threshold=29 " LOCKBENCH_SOURCE_DIR
      "/exporter/lockbench-probe.service 2>&1");
  EXPECT_EQ(status, 0) << text;
}

}  // namespace
}  // namespace lockbench
