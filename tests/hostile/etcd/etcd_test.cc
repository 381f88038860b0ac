// Servers that answer with anything but what a request calls for, at each point of every lock on
// etcd.

#include <gtest/gtest.h>

#include <array>

#include "tests/hostile/etcd/hostile_etcd.h"
#include "tests/support/fiber_lock.h"
#include "tests/support/hostile_life.h"
#include "tests/support/hostile_server.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;

/// Whether the transaction was done, in a revision that can be, and only its own key was there.
bool was_granted(const HostileEtcd& etcd) {
  const etcdserverpb::TxnResponse txn = etcd.latest_txn();
  if (!txn.succeeded() || txn.header().revision() <= 0 || txn.responses_size() != 2) return false;
  const auto& last = txn.responses(1);
  if (!last.has_response_range()) return last.has_response_put();  // chubby's guard
  const auto& found = last.response_range().kvs();
  return found.size() == 1 && found[0].key() == etcd.key() && found[0].create_revision() > 0;
}

class HostileEtcdTest : public testing::TestWithParam<const Descriptor*> {};

TEST_P(HostileEtcdTest, GetsNoLockGrantedThatItDidNotGrant) {
  constexpr std::size_t kAtOnce = 12;
  HostileEtcd honest({}, 0);
  bool granted = false;
  live(
      *GetParam(), honest.url(), [&] { granted = true; }, kPatience);
  ASSERT_TRUE(granted) << "at an honest server";
  const std::vector<EtcdMisdeed> all = etcd_misdeeds();
  const auto requests = static_cast<std::size_t>(honest.requests());
  side_by_side(all.size() * requests, kAtOnce, [&](std::size_t index) {
    const EtcdMisdeed& misdeed = all[index / requests];
    const int at = static_cast<int>(index % requests) + 1;
    SCOPED_TRACE(misdeed.name + " at " + std::to_string(at));
    HostileEtcd etcd(misdeed, at);
    live(*GetParam(), etcd.url(), [&] { EXPECT_TRUE(was_granted(etcd)); });
  });
}

TEST_P(HostileEtcdTest, KeepsASessionOnlyByAnswersForIt) {
  constexpr std::chrono::seconds kTtl = 4s;
  const auto answer = [](std::int64_t id_offset, std::int64_t ttl) {
    return EtcdMisdeed{.name = "an answer for another lease", .change = [=](Message& message) {
                         auto* const kept =
                             dynamic_cast<etcdserverpb::LeaseKeepAliveResponse*>(&message);
                         if (kept == nullptr) return;
                         kept->set_id(kept->id() + id_offset);
                         kept->set_ttl(ttl);
                       }};
  };
  const auto is_kept = [&](const EtcdMisdeed& misdeed) {
    const HostileEtcd etcd(misdeed, 0);
    const auto env = make_system_env(1);
    Services services;
    const Endpoints endpoints{{"etcd", {etcd.url()}}};
    const StrategyOptions options{.command_timeout = kPatience};
    const auto lock = make_carried(
        *GetParam(),
        {.endpoints = endpoints, .options = options, .env = *env, .services = services});
    const AcquireResult held = lock->acquire({.key = "lockbench:hostile:{k}", .ttl = kTtl});
    if (!held.lease) return false;
    const TimePoint end = held.lease->state->valid_until();
    const auto is_prolonged = [&] { return held.lease->state->valid_until() > end; };
    (void)eventually([&] { return is_prolonged() || env->now() > end; });
    return is_prolonged();
  };
  std::array<bool, 4> kept{};
  side_by_side(kept.size(), kept.size(), [&](std::size_t index) {
    kept.at(index) = index == 0   ? is_kept(answer(0, kTtl.count()))
                     : index == 1 ? is_kept(answer(1, kTtl.count()))
                     : index == 2 ? is_kept(answer(0, 0))
                                  : is_kept(answer(0, -1));
  });
  EXPECT_EQ(kept, (std::array{true, false, false, false}));
}

INSTANTIATE_TEST_SUITE_P(All, HostileEtcdTest, testing::ValuesIn(strategies_of("etcd")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

}  // namespace
}  // namespace lockbench::test
