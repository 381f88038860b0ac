#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

#include "strategies/registry.h"
#include "testbed/servers/kinds.h"
#include "tests/conformance/common/full_use.h"
#include "tests/conformance/etcd/etcd_test_store.h"
#include "tests/support/etcd_gateway.h"

namespace lockbench::test {
namespace {

using testing::Each;
using testing::HasSubstr;

// Keys go in base64: from "lockbench:" to the first that does not begin so, and "foreign".
constexpr const char* kOurs = R"("key":"bG9ja2JlbmNoOg==","range_end":"bG9ja2JlbmNoOw==")";
constexpr const char* kForeign = R"("key":"Zm9yZWlnbg==")";

/// The documented role and user.
class EtcdRights : public testing::Test {
 protected:
  EtcdRights() {
    for (const std::string& line :
         documented_rights("etcdctl role add", {{"PASSWORD", "hunter2"}})) {
      run(line);
    }
  }
  ~EtcdRights() override {
    root_.must("/v3/auth/user/delete", R"({"name":"lockbench"})");
    root_.must("/v3/auth/role/delete", R"({"role":"lockbench"})");
  }

  /// What etcdctl would do.
  void run(const std::string& line) {
    std::istringstream text(line);
    std::string program, what, verb, a, b, c, d;
    text >> program >> what >> verb >> a >> b >> c >> d;
    if (what + verb == "roleadd") {
      root_.must("/v3/auth/role/add", fmt::format(R"({{"name":"{}"}})", a));
    } else if (what + verb == "rolegrant-permission") {
      EXPECT_EQ(c + " " + d, "--prefix=true lockbench:");
      EXPECT_EQ(b, "readwrite");
      grant("READWRITE");
    } else if (what + verb == "useradd") {
      const std::size_t colon = a.find(':');
      root_.must("/v3/auth/user/add", fmt::format(R"({{"name":"{}","password":"{}"}})",
                                                  a.substr(0, colon), a.substr(colon + 1)));
    } else if (what + verb == "usergrant-role") {
      root_.must("/v3/auth/user/grant", fmt::format(R"({{"user":"{}","role":"{}"}})", a, b));
    } else {
      throw std::runtime_error("unknown: " + line);
    }
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
    std::vector<std::string> outcomes;
    for (const Descriptor* strategy : all_strategies()) {
      if (strategy->backend == "etcd" || strategy->name == "chubby") {
        outcomes.push_back(use_fully(*strategy, {url}));
      }
    }
    return outcomes;
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
