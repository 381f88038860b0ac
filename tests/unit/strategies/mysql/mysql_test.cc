#include <gtest/gtest.h>

#include "strategies/mysql/client/session.h"

namespace lockbench::mysql {
namespace {

TEST(LockName, IsSha256AndFitsIntoGetLock) {
  EXPECT_EQ(lock_name("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(lock_name("lockbench:embedded:{" + std::string(500, 'k') + "}").size(), 64U);
}

TEST(Parameters, StandInTheTextAsBytesAndCannotEndIt) {
  const std::vector<std::string> none, one{"a'b"}, two{"", "\\?"};
  EXPECT_EQ(with_parameters("SELECT 1", none), "SELECT 1");
  EXPECT_EQ(with_parameters("SELECT '?'", none), "SELECT '?'");
  EXPECT_EQ(with_parameters("a = ? AND b", one), "a = x'612762' AND b");
  EXPECT_EQ(with_parameters("?, ?", two), "x'', x'5c3f'");
  EXPECT_EQ(with_parameters("?, ?, ?", two), "x'', x'5c3f', x'5c3f'") << "the last one again";
}

}  // namespace
}  // namespace lockbench::mysql
