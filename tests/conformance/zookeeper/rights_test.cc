#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sstream>

#include "tests/conformance/common/full_use.h"
#include "tests/conformance/zookeeper/zookeeper_test_store.h"

namespace lockbench::test {
namespace {

using testing::Each;
using testing::Not;

// Hash of lockbench:hunter2, from the documented command.
constexpr const char* kHash = "lPPr46mNbB7fdpM/Bh3w0K9n0Lg=";

/// The access list of the documented chroot.
std::string documented_acl() {
  const auto lines = documented_rights("create /locks", {{"HASH", kHash}});
  std::istringstream text(lines.at(1));
  std::string set_acl, path, acl;
  text >> set_acl >> path >> acl;
  return acl;
}

/// The outcome of each strategy in its own chroot with this access list. Other users may not remove
/// the chroot; it ends with the server.
std::vector<std::string> outcomes(const std::string& acl) {
  static int made = 0;
  const std::string chroot = fmt::format("/locks{}", ++made);
  shared_zookeeper().probe().make(chroot, acl);
  const std::string url = fmt::format("zk://lockbench:hunter2@127.0.0.1:{}{}",
                                      shared_zookeeper().server().port(), chroot);
  return use_all_fully("zookeeper", url);
}

TEST(ZookeeperRights, AreEnough) { EXPECT_THAT(outcomes(documented_acl()), Each("")); }

TEST(ZookeeperRights, AreAllNeeded) {
  const std::string acl = documented_acl();
  const std::size_t rights = acl.rfind(':') + 1;
  ASSERT_EQ(acl.substr(rights), "cd");
  for (std::size_t i = rights; i < acl.size(); ++i) {
    std::string less = acl;
    less.erase(i, 1);
    EXPECT_THAT(outcomes(less), Each(Not(""))) << less;
  }
}

}  // namespace
}  // namespace lockbench::test
