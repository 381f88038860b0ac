#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulate/etcd/link.h"
#include "strategies/etcd/client/messages.h"
#include "tests/support/virtual_time.h"
#include "tests/unit/simulate/puppet.h"

namespace lockbench::simulate {
namespace {

using namespace std::chrono_literals;

struct Linked : Stage {
  std::unique_ptr<etcd::Link> open() {
    const HostPort member{"puppet", 1};
    const etcd::Limits limits{.longest = 5s};
    std::shared_ptr<etcd::Completions> completions;
    return test::must(links.open({.member = member,
                                  .endpoint = endpoint,
                                  .limits = limits,
                                  .env = env,
                                  .completions = completions}));
  }
  grpc::StatusCode grant(etcd::Link& link, const etcd::Limits& limits) {
    const TimePoint began = world.now();
    const auto code =
        link.call(etcd::kLeaseGrant.name, etcdserverpb::LeaseGrantRequest(), response, "", limits)
            .error_code();
    waited = world.now() - began;
    return code;
  }
  void answer(std::uint32_t call, std::int64_t id, Duration after) {
    etcdserverpb::LeaseGrantResponse granted;
    granted.set_id(id);
    server.wires.at(0)->answer(Frame{.call = call, .body = granted.SerializeAsString()}.bytes(),
                               world.now() + after);
  }

  SimulatedLinks links{std::make_shared<SimulatedDialer>(host, network, servers)};
  HostEnv env{host, 1, false};
  const etcd::Endpoint endpoint{};
  etcdserverpb::LeaseGrantResponse response;
  Duration waited{};
};

TEST(SimulatedLinks, AnAnswerAfterTheDeadlineIsNotThatOfTheNextCall) {
  test::on_virtual_time([] {
    Linked linked;
    const auto link = linked.open();
    EXPECT_EQ(linked.grant(*link, {.longest = 1s}), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_EQ(linked.waited, 1s);
    linked.answer(1, 11, 0s);
    linked.answer(2, 22, 10ms);
    EXPECT_EQ(linked.grant(*link, {.longest = 1s}), grpc::StatusCode::OK);
    EXPECT_EQ(linked.response.id(), 22);
  });
}

TEST(SimulatedLinks, AStopEndsACallAtOnce) {
  test::on_virtual_time([] {
    Linked linked;
    const auto link = linked.open();
    std::stop_source stop;
    linked.world.at(linked.world.now() + 1s, [&] { stop.request_stop(); });
    EXPECT_EQ(linked.grant(*link, {.stop = stop.get_token()}), grpc::StatusCode::CANCELLED);
    EXPECT_EQ(linked.waited, 1s);
  });
}

TEST(SimulatedLinks, WhatCameBeforeTheEndOfTheConnectionIsRead) {
  test::on_virtual_time([] {
    Linked linked;
    const auto link = linked.open();
    EXPECT_TRUE(link->ready());
    linked.host.pause(linked.world.now(), 1s);
    linked.answer(1, 11, 0s);
    linked.server.wires.at(0)->refuse("closed");
    EXPECT_EQ(linked.grant(*link, {.longest = 5s}), grpc::StatusCode::OK);
    EXPECT_EQ(linked.response.id(), 11);
    EXPECT_FALSE(link->ready());
    EXPECT_EQ(linked.grant(*link, {.longest = 5s}), grpc::StatusCode::UNAVAILABLE);
  });
}

}  // namespace
}  // namespace lockbench::simulate
