#include <gmock/gmock.h>

#include <sstream>

#include "tests/conformance/common/full_use.h"
#include "tests/conformance/etcd/etcd_test_store.h"
#include "tests/support/etcd_gateway.h"

namespace lockbench::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Keys in base64: from "lockbench:" to the first key without that prefix, and "foreign".
constexpr const char* kOurs = R"("key":"bG9ja2JlbmNoOg==","range_end":"bG9ja2JlbmNoOw==")";
constexpr const char* kForeign = R"("key":"Zm9yZWlnbg==")";

/// The documented role and user.
class EtcdRights : public testing::Test {
 protected:
  /// Executes the documented lines.
  EtcdRights() {
    EXPECT_THAT(documented_rights("etcdctl role add", {{"PASSWORD", "hunter2"}}),
                ElementsAre("etcdctl role add lockbench",
                            "etcdctl role grant-permission lockbench readwrite --prefix=true "
                            "lockbench:",
                            "etcdctl user add lockbench:hunter2",
                            "etcdctl user grant-role lockbench lockbench"));
    root_.must("/v3/auth/role/add", R"({"name":"lockbench"})");
    grant("READWRITE");
    root_.must("/v3/auth/user/add", R"({"name":"lockbench","password":"hunter2"})");
    root_.must("/v3/auth/user/grant", R"({"user":"lockbench","role":"lockbench"})");
  }
  ~EtcdRights() override {
    root_.must("/v3/auth/user/delete", R"({"name":"lockbench"})");
    root_.must("/v3/auth/role/delete", R"({"role":"lockbench"})");
  }

  void grant(const std::string& type) {
    root_.must("/v3/auth/role/grant",
               fmt::format(R"({{"name":"lockbench","perm":{{"permType":"{}",{}}}}})", type, kOurs));
  }
  void revoke() {
    root_.must("/v3/auth/role/revoke", fmt::format(R"({{"role":"lockbench",{}}})", kOurs));
  }

  static std::vector<std::string> outcomes() {
    const std::string url =
        fmt::format("etcd://lockbench:hunter2@127.0.0.1:{}", shared_etcd().server().port());
    return use_all_fully("etcd", url);
  }

  const EtcdGateway root_{shared_etcd().server().port(), testbed::kEtcdRoot,
                          shared_etcd().server().secret()};
};

TEST_F(EtcdRights, AreEnough) { EXPECT_THAT(outcomes(), Each("")); }

TEST_F(EtcdRights, AreAllNeeded) {
  for (const char* less : {"READ", "WRITE"}) {
    revoke();
    grant(less);
    EXPECT_THAT(outcomes(), Each(HasSubstr("permission denied"))) << less;
  }
  revoke();
  EXPECT_THAT(outcomes(), Each(HasSubstr("permission denied")));
}

TEST_F(EtcdRights, GiveNothingElse) {
  const EtcdGateway user(shared_etcd().server().port(), "lockbench", "hunter2");
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v3/kv/put", fmt::format(R"({{{},"value":""}})", kForeign)},
           {"/v3/kv/range", fmt::format("{{{}}}", kForeign)},
           {"/v3/kv/deleterange", fmt::format("{{{}}}", kForeign)},
           {"/v3/auth/user/list", "{}"},
           {"/v3/auth/disable", "{}"}}) {
    EXPECT_THAT(user.ask(path, body), HasSubstr("permission denied")) << path;
  }
}

}  // namespace
}  // namespace lockbench::test
