#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "strategies/redis/client/rights.h"
#include "strategies/registry.h"

namespace lockbench {
namespace {

TEST(LeastRights, OfRedisAreThoseThatListShows) {
  std::ifstream file(LOCKBENCH_SOURCE_DIR "/docs/operations.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(page, testing::HasSubstr("\n" + redis::acl_command(all_strategies()) + "\n"))
      << "lockbench list --redis-acl prints it";
}

}  // namespace
}  // namespace lockbench
