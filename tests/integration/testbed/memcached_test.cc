#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testbed/servers/memcached_server.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

class Memcached : public testing::Test {
 protected:
  std::unique_ptr<Testbed> testbed_ = must_start();

  std::unique_ptr<Server> must_start_memcached(const MemcachedOptions& options = {}) {
    auto server = start_memcached(*testbed_, options);
    EXPECT_TRUE(server) << server.error();
    return server ? *std::move(server) : nullptr;
  }
};

TEST_F(Memcached, AnswersOnAPortOfItsOwnAndNowhereElse) {
  const auto one = must_start_memcached();
  const auto two = must_start_memcached();
  ASSERT_NE(one->port(), two->port());
  EXPECT_EQ(one->url(), "memcached://lockbench:" + testbed_->secret() + "@" + one->address());
  EXPECT_EQ(ask_memcached(*one, "add k 0 0 1\r\nv"), "STORED");
  EXPECT_EQ(ask_memcached(*two, "get k"), "END");
}

}  // namespace
}  // namespace lockbench::testbed
