#include "strategies/store.h"

#include <gtest/gtest.h>

namespace lockbench {
namespace {

TEST(RunId, IsStrict) {
  for (const char* id : {"20261121T012530Z-4f3a9c", "20261121T012530Z-4f3a9c-0",
                         "20261121T012530Z-4f3a9c-123456789"}) {
    EXPECT_TRUE(is_run_id(id)) << id;
  }
  for (const char* other :
       {"", "*", "20261121T012530Z", "20261121T012530Z-4f3a9", "20261121T012530Z-4f3a9c*",
        "20261121T012530Z-4f3a9c:", "20261121T012530Z-4f3a9c-", "20261121T012530Z-4f3a9c-*",
        "20261121T012530Z-4f3a9c-1-2", "20261121T012530Z-4f3a9c-1234567890",
        "20261121T012530Z-4F3A9C", "2026112?T012530Z-4f3a9c", "20261121t012530z_4f3a9c",
        " 20261121T012530Z-4f3a9c", "20261121T012530Z-4f3a9c\n", "../20261121T012530Z-4f3a9c"}) {
    EXPECT_FALSE(is_run_id(other)) << other;
  }
}

TEST(RunId, OfAPartBelongsToItsRun) {
  EXPECT_TRUE(is_of_run("r", "r"));
  EXPECT_TRUE(is_of_run("r-12", "r"));
  EXPECT_TRUE(is_of_run("r-1", "r-1"));
  for (const char* other : {"", "r1", "r-", "r-x", "r-1x", "r:", "rr", "s"}) {
    EXPECT_FALSE(is_of_run(other, "r")) << other;
  }
  EXPECT_FALSE(is_of_run("r-12", "r-1"));
}

}  // namespace
}  // namespace lockbench
