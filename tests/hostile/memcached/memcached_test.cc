// Servers that answer with anything but what a command calls for, at each point of every lock on
// memcached.

#include <gtest/gtest.h>

#include "tests/hostile/memcached/memcached_speaker.h"
#include "tests/support/hostile_life.h"
#include "tests/support/memcached_replies.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// The last request for the lock decides.
bool was_granted(const std::vector<HostileServer::Exchange>& exchanges) {
  for (auto exchange = exchanges.rbegin(); exchange != exchanges.rend(); ++exchange) {
    if (exchange->request.starts_with("add ")) return exchange->sent == "STORED\r\n";
  }
  return false;
}

class HostileMemcached : public testing::TestWithParam<const Descriptor*> {};

TEST_P(HostileMemcached, GetsNoLockGrantedThatItDidNotGrant) {
  std::vector<std::string> replies = memcached_replies("lockbench:hostile:{k}");
  replies.emplace_back("STORED\r\nSTORED\r\n");
  expect_no_false_grants(
      *GetParam(), misdeeds(replies, {"STORED\r\n", "x", "STAT a b\r\n", "\r\n"}), [] {
        const auto items = std::make_shared<MemcachedItems>();
        return Honest{[items] { return std::make_unique<MemcachedSpeaker>(items); }, was_granted};
      });
}

INSTANTIATE_TEST_SUITE_P(All, HostileMemcached, testing::ValuesIn(strategies_of("memcached")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

}  // namespace
}  // namespace lockbench::test
