// Servers that answer with anything but what a command calls for, at each point of every lock on
// memcached.

#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/hostile/memcached/memcached_speaker.h"
#include "tests/support/hostile_life.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

std::vector<const Descriptor*> memcached_strategies() {
  std::vector<const Descriptor*> all = all_strategies();
  std::erase_if(all, [](const Descriptor* strategy) { return strategy->backend != "memcached"; });
  return all;
}

/// The last request for the lock decides.
bool was_granted(const std::vector<HostileServer::Exchange>& exchanges) {
  for (auto exchange = exchanges.rbegin(); exchange != exchanges.rend(); ++exchange) {
    if (exchange->request.starts_with("add ")) return exchange->sent == "STORED\r\n";
  }
  return false;
}

class HostileMemcached : public testing::TestWithParam<const Descriptor*> {
 protected:
  static MakeSpeaker speaker() {
    return [items = std::make_shared<MemcachedItems>()] {
      return std::make_unique<MemcachedSpeaker>(items);
    };
  }

  /// How many requests such a life takes at a server that is honest.
  static int requests() {
    HostileServer server(speaker(), {});
    bool granted = false;
    live(*GetParam(), server.address(), [&] { granted = true; });
    EXPECT_TRUE(granted) << "at an honest server";
    return static_cast<int>(server.exchanges().size());
  }
};

TEST_P(HostileMemcached, GetsNoLockGrantedThatItDidNotGrant) {
  std::vector<Misdeed> all = misdeeds(memcached_replies(), "STORED\r\n");
  for (const char* flood : {"x", "STAT a b\r\n", "\r\n"}) {
    all.push_back({Misdeed::Kind::flood, flood});
  }
  play_all(all, requests(), [](const HostileServer::Plan& plan) {
    HostileServer server(speaker(), plan);
    live(*GetParam(), server.address(), [&] { EXPECT_TRUE(was_granted(server.exchanges())); });
  });
}

INSTANTIATE_TEST_SUITE_P(All, HostileMemcached, testing::ValuesIn(memcached_strategies()),
                         [](const testing::TestParamInfo<const Descriptor*>& tested) {
                           return test_name_of(tested.param->name);
                         });

}  // namespace
}  // namespace lockbench::test
