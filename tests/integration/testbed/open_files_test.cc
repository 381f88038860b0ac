#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "testbed/servers/machine.h"

namespace lockbench::testbed {
namespace {

class OpenFiles : public testing::Test {
 protected:
  OpenFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = 100;
    setrlimit(RLIMIT_NOFILE, &low);
  }
  ~OpenFiles() override { setrlimit(RLIMIT_NOFILE, &before_); }

  static rlim_t soft() {
    rlimit now{};
    getrlimit(RLIMIT_NOFILE, &now);
    return now.rlim_cur;
  }

  rlimit before_{};
};

TEST_F(OpenFiles, LimitIsRaised) {
  EXPECT_EQ(raise_open_file_limit(200), 200U);
  EXPECT_EQ(soft(), 200U);
}

TEST_F(OpenFiles, LimitIsNeverLowered) {
  EXPECT_EQ(raise_open_file_limit(50), 100U);
  EXPECT_EQ(soft(), 100U);
}

TEST_F(OpenFiles, LimitStopsAtTheHardOneAndSaysSo) {
  const auto raised = raise_open_file_limit(before_.rlim_max + 1);
  ASSERT_FALSE(raised);
  EXPECT_NE(raised.error().find(std::to_string(before_.rlim_max + 1)), std::string::npos);
  EXPECT_NE(raised.error().find(std::to_string(before_.rlim_max)), std::string::npos);
  EXPECT_EQ(soft(), before_.rlim_max);
}

}  // namespace
}  // namespace lockbench::testbed
