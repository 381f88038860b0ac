#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulate/etcd/link.h"
#include "simulate/etcd/model.h"
#include "simulate/etcd/node.h"
#include "simulate/hunt.h"
#include "strategies/etcd/lock.h"
#include "tests/support/virtual_time.h"
#include "tests/unit/simulate/plans.h"

namespace lockbench::simulate {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Le;

class Etcd : public testing::Test {
 protected:
  template <class Request, class Response>
  Response ask(const etcd::Method<Request, Response>& method, const Request& request) {
    const auto answer = model_.execute(method.name, request.SerializeAsString(), now_);
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    Response response;
    EXPECT_TRUE(response.ParseFromString(answer.response));
    return response;
  }
  etcd::TxnResult transact(const etcd::Txn& txn) {
    return etcd::read_txn(txn, ask(etcd::kTxn, etcd::to_request(txn))).value();
  }
  std::vector<std::string> newest(std::int64_t count, std::int64_t until = 0) {
    std::vector<std::string> names;
    const auto result = transact({.then = {etcd::newest("k/", count, until)}});
    for (const etcd::Key& key : result.found.at(0)) names.push_back(key.name);
    return names;
  }
  etcd::LeaseId grant(std::int64_t seconds) {
    etcdserverpb::LeaseGrantRequest request;
    request.set_ttl(seconds);
    return etcd::read_grant(ask(etcd::kLeaseGrant, request)).value().id;
  }
  /// The TTL; 0: it is gone.
  std::int64_t keep_alive(etcd::LeaseId lease) {
    etcdserverpb::LeaseKeepAliveRequest request;
    request.set_id(lease);
    return ask(etcd::kLeaseKeepAlive, request).ttl();
  }

  EtcdModel model_;
  TimePoint now_{1h};
};

TEST_F(Etcd, ATransactionIsOneRevisionWhichOrdersTheKeys) {
  const auto first =
      transact({.conditions = {etcd::absent("k/b")},
                .then = {etcd::put("k/b", 0), etcd::put_value("x", "y"), etcd::newest("k/", 2)}});
  EXPECT_TRUE(first.succeeded);
  EXPECT_EQ(first.revision, 2);
  EXPECT_EQ(first.found.at(2).at(0).created, 2) << "it sees its own changes";
  EXPECT_EQ(transact({.then = {etcd::put("k/a", 0)}}).revision, 3);
  EXPECT_EQ(transact({.then = {etcd::put("k/c", 0)}}).revision, 4);
  EXPECT_EQ(transact({.then = {etcd::put_value("k/b", "new")}}).revision, 5);
  EXPECT_EQ(transact({.then = {etcd::remove("nothing")}}).revision, 5);
  EXPECT_THAT(newest(9), ElementsAre("k/c", "k/a", "k/b"));
  EXPECT_THAT(newest(1), ElementsAre("k/c"));
  EXPECT_THAT(newest(1, 3), ElementsAre("k/a"));
  etcdserverpb::RequestOp read;
  read.mutable_request_range()->set_key("k/b");
  const auto b = transact({.then = {read}}).found[0].at(0);
  EXPECT_EQ(b.created, 2);
  EXPECT_EQ(b.changed, 5);
  EXPECT_EQ(b.value, "new");
  EXPECT_THAT(model_.names(), ElementsAre("k/a", "k/b", "k/c", "x"));
}

TEST_F(Etcd, ConditionsCompareTheRevisionsOfAKeyOrOfEachInARange) {
  transact({.then = {etcd::put("k/a", 0)}});
  transact({.then = {etcd::put("k/b", 0)}});
  transact({.then = {etcd::put("k/a", 0)}});
  const auto hold = [&](const etcdserverpb::Compare& condition) {
    return transact({.conditions = {condition}}).succeeded;
  };
  EXPECT_TRUE(hold(etcd::exists("k/a")) && hold(etcd::absent("k/c")));
  EXPECT_FALSE(hold(etcd::exists("k/c")) || hold(etcd::absent("k/a")));
  EXPECT_TRUE(hold(etcd::created_in("k/a", 2)) && hold(etcd::changed_in("k/a", 4)));
  EXPECT_FALSE(hold(etcd::created_in("k/a", 4)) || hold(etcd::changed_in("k/a", 2)));
  EXPECT_TRUE(hold(etcd::none_below("l/")) && !hold(etcd::none_below("k/")));
  EXPECT_TRUE(hold(etcd::none_below_before("k/", 2)) && !hold(etcd::none_below_before("k/", 3)));
  EXPECT_FALSE(hold(etcd::none_below_before("l/", 2))) << "of an empty range, revision 0";
  const auto other = transact({.conditions = {etcd::absent("k/a")},
                               .then = {etcd::put("k/z", 0)},
                               .otherwise = {etcd::remove("k/a")}});
  EXPECT_FALSE(other.succeeded);
  EXPECT_THAT(model_.names(), ElementsAre("k/b"));
}

TEST_F(Etcd, ALeaseEndsWithItsKeysUnlessItIsKeptAlive) {
  const etcd::LeaseId lease = grant(2), other = grant(2);
  transact({.then = {etcd::put("k/a", lease), etcd::put("k/b", lease), etcd::put("k/c", lease)}});
  transact({.then = {etcd::put("k/b", other), etcd::put_value("k/c", "on no lease")}});
  now_ += 1500ms;
  EXPECT_EQ(keep_alive(other), 2);
  now_ += 500ms;
  model_.expire(now_);
  EXPECT_THAT(model_.take_deleted(), ElementsAre("k/a"));
  EXPECT_THAT(model_.names(), ElementsAre("k/b", "k/c"));
  EXPECT_EQ(model_.revision(), 4);
  EXPECT_EQ(keep_alive(lease), 0);
  EXPECT_EQ(model_.next_expiry(), now_ + 1500ms);
  // Too late: answered once the leader has looked.
  now_ += 1500ms;
  etcdserverpb::LeaseKeepAliveRequest late;
  late.set_id(other);
  const auto answer = [&] {
    return model_.execute(etcd::kLeaseKeepAlive.name, late.SerializeAsString(), now_);
  };
  EXPECT_TRUE(answer().waits);
  EXPECT_THAT(model_.names(), ElementsAre("k/b", "k/c"));
  model_.expire(now_);
  EXPECT_FALSE(answer().waits);
  EXPECT_EQ(keep_alive(other), 0);
  EXPECT_THAT(model_.names(), ElementsAre("k/c"));
}

TEST_F(Etcd, OnlySerializableReadsNeedNoOtherMember) {
  using Path = EtcdModel::Path;
  const auto path = [&](const auto& method, const auto& request) {
    return model_.execute(method.name, request.SerializeAsString(), now_).path;
  };
  etcdserverpb::RangeRequest range;
  range.set_key("k");
  EXPECT_EQ(path(etcd::kRange, range), Path::quorum);
  range.set_serializable(true);
  EXPECT_EQ(path(etcd::kRange, range), Path::here);
  EXPECT_EQ(path(etcd::kTxn, etcd::to_request({.then = {etcd::get("k")}})), Path::quorum);
  EXPECT_EQ(path(etcd::kTxn, etcd::to_request({.otherwise = {etcd::remove("k")}})), Path::log);
}

TEST_F(Etcd, WhatNamesALeaseThatIsGoneTakesNoEffect) {
  const etcd::Txn txn{.then = {etcd::put("k/a", 0), etcd::put("k/b", 7)}};
  const auto answer =
      model_.execute(etcd::kTxn.name, etcd::to_request(txn).SerializeAsString(), now_);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(model_.names(), IsEmpty());
  EXPECT_EQ(model_.revision(), 1);
}

TEST_F(Etcd, ANewLeaderCountsLeasesFromTheBeginning) {
  const etcd::LeaseId lease = grant(2);
  now_ += 10s;
  model_.lead(now_);
  EXPECT_EQ(model_.next_expiry(), now_ + 2500ms);
  model_.expire(now_ + 2s);
  EXPECT_EQ(keep_alive(lease), 2);
}

TEST(SimulatedEtcd, AFrameIsTakenWhenItIsComplete) {
  const std::string bytes =
      Frame{.call = 7, .code = 5, .text = "why", .body = std::string("a\0b", 3)}.bytes();
  std::string input = bytes.substr(0, bytes.size() - 1);
  EXPECT_FALSE(Frame::take(input));
  input += bytes.back() + bytes;
  for (int i = 0; i < 2; ++i) {
    const auto frame = Frame::take(input);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->call, 7U);
    EXPECT_EQ(frame->code, 5U);
    EXPECT_EQ(frame->text, "why");
    EXPECT_EQ(frame->body, std::string("a\0b", 3));
  }
  EXPECT_EQ(input, "");
}

// No fault of the cluster breaks a lock whose holder goes on in time.
TEST(SimulatedEtcd, KeepsWhatItHasAcknowledgedAndIsBrokenByThePausesOfHolders) {
  for (const char* const name : {"etcd", "chubby"}) {
    Plan plan = plan_for(name);
    plan.workload.strategy.command_timeout = 500ms;
    plan.workload.hold = loadgen::DurationDistribution::constant(500ms);
    plan.workload.duration = 10min;
    Plan faulty = plan;
    faulty.faults = faults(
        "store-kill 2/m 300ms\nfailover 2/m 300ms\nclock-step:9s 1/m\nclock-step:-9s 1/m\n"
        "eviction 9/m\n");
    const Outcome outcome = test::must(simulate(faulty, 1));
    EXPECT_EQ(outcome.violations, 0U) << name;
    EXPECT_GT(outcome.sections, 500U) << name;
    plan.pauses = {test::must(Pauses::parse("5%@10s"))};
    EXPECT_THAT(test::must(simulate(plan, 1)).causes, Contains(Key("client-pause"))) << name;
  }
}

TEST(SimulatedEtcd, ADeadClientsSessionEndsAfterItsTtl) {
  Plan plan = plan_for("etcd");
  plan.workload.ttl = 4s;
  plan.faults.add(test::must(loadgen::parse_fault("client-kill@10s+3s")));
  const Outcome outcome = test::must(simulate(plan, 1));
  // Kept alive at each third; the leader looks twice a second.
  EXPECT_THAT(outcome.longest_outage, AllOf(Ge(2s), Le(5s)));
  EXPECT_EQ(outcome.violations, 0U);
}

TEST(SimulatedEtcd, ARenewalThatComesTooLateWaitsForTheEndOfItsLease) {
  test::on_virtual_time([] {
    World world{1, {}};
    Network network{world, {}};
    EtcdNode node(world, network, 0, kLocalRegion, 1);
    const std::vector<Server*> servers{&node};
    Host host(world, 1, kLocalRegion, Clock(), {});
    SimulatedLinks links(std::make_shared<SimulatedDialer>(host, network, servers));
    HostEnv env(host, 1, false);
    const etcd::Endpoint endpoint = test::must(etcd::parse_endpoint("etcd://etcd-0:2379"));
    etcd::Connection client(endpoint, 5s, env, links);
    const auto lease = client.grant_lease(1, {}).value();
    const etcd::Txn txn{
        .then = {etcd::put("lock/place/1", lease.id), etcd::put("lock/place/2", lease.id)}};
    ASSERT_TRUE(client.transact({}, txn).value());
    const auto longer = client.grant_lease(9, {}).value();
    world.carrier().wait(nullptr, world.now() + 1s, {});
    std::shared_ptr<etcd::Completions> none;
    const etcd::Limits limits{{}, 5s};
    const auto link = links
                          .open({.member = endpoint.hosts.front(),
                                 .endpoint = endpoint,
                                 .limits = limits,
                                 .env = env,
                                 .completions = none})
                          .value();
    const auto stream = link->make_stream(etcd::kLeaseKeepAlive.name, {}, Duration::max());
    for (const etcd::LeaseId id : {lease.id, longer.id}) {
      etcdserverpb::LeaseKeepAliveRequest request;
      request.set_id(id);
      ASSERT_TRUE(stream->write(request, limits));
    }
    world.carrier().wait(nullptr, world.now() + 10ms, {});
    EXPECT_THAT(node.keys(), ElementsAre("lock")) << "the leader has not looked yet";
    for (const std::int64_t ttl : {0, 9}) {
      ASSERT_TRUE(stream->read(limits));
      EXPECT_EQ(static_cast<const etcdserverpb::LeaseKeepAliveResponse&>(stream->response()).ttl(),
                ttl);
    }
    EXPECT_THAT(node.keys(), IsEmpty());
  });
}

TEST(SimulatedEtcd, AMemberThatIsApartHasNoAnswerAndARestartedOneLosesItsConnections) {
  test::on_virtual_time([] {
    World world{1, {}};
    Network network{world, {}};
    EtcdNode node(world, network, 0, kLocalRegion, 3);
    const std::vector<Server*> servers{&node};
    Host host(world, 1, kLocalRegion, Clock(), {});
    SimulatedLinks links(std::make_shared<SimulatedDialer>(host, network, servers));
    HostEnv env(host, 1, false);
    const etcd::Endpoint second = test::must(etcd::parse_endpoint("etcd://etcd-0:2"));
    etcd::Connection client(second, 1s, env, links);
    const auto lease = client.grant_lease(1, {}).value();
    std::shared_ptr<etcd::Completions> none;
    const auto link = links
                          .open({.member = second.hosts.front(),
                                 .endpoint = second,
                                 .limits = {{}, 1s},
                                 .env = env,
                                 .completions = none})
                          .value();
    const auto stream = link->make_stream(etcd::kLeaseKeepAlive.name, {}, Duration::max());
    etcdserverpb::LeaseKeepAliveRequest renewal;
    renewal.set_id(lease.id);
    world.carrier().wait(nullptr, world.now() + 1s, {});
    ASSERT_TRUE(stream->write(renewal, {{}, 1s}));
    world.carrier().wait(nullptr, world.now() + 10ms, {});
    node.isolate(1);  // the answer waits until the leader has looked
    EXPECT_FALSE(stream->read({{}, 1s}));
    EXPECT_FALSE(client.grant_lease(1, {}));
    node.reunite();
    EXPECT_TRUE(client.grant_lease(1, {}));
    const auto other = link->make_stream(etcd::kLeaseKeepAlive.name, {}, Duration::max());
    ASSERT_TRUE(other->write(renewal, {{}, 1s}));
    ASSERT_TRUE(other->read({{}, 1s}));
    node.restart_follower(1);
    ASSERT_FALSE(other->write(renewal, {{}, 1s}) && other->read({{}, 1s}));
  });
}

TEST(SimulatedEtcd, TellsItsCommands) {
  Plan plan = plan_for("etcd");
  plan.workload.duration = 1s;
  EXPECT_THAT(played(plan).trace,
              AllOf(HasSubstr(" etcd-0 executes Txn "), HasSubstr(" etcd-0 executes Watch ")));
}

/// Its places are on no lease, and a release leaves them.
class LeavesItsPlaces final : public etcd::LeaseQueueLock {
 public:
  using LeaseQueueLock::LeaseQueueLock;

 protected:
  Looked enter(etcd::Place& place, const std::stop_token& stop) override {
    const etcd::Txn txn{.then = {etcd::put(place.lock + "/" + place.token, 0)}};
    const auto result = etcd().transact(place.lock, txn, stop);
    if (!result) return tl::unexpected(result.error());
    if (!*result) return std::nullopt;
    place.revision = (*result)->revision;
    return etcd::Standing{.granted = true, .fencing = static_cast<std::uint64_t>(place.revision)};
  }
  Looked look(const etcd::Place& /*place*/, const std::stop_token& /*stop*/) override {
    return std::nullopt;
  }
  StoreResult<bool> leave(const etcd::Place& /*place*/, const std::stop_token& /*stop*/) override {
    return true;
  }
};

TEST(SimulatedEtcd, AHuntSeesAPlaceThatStaysAfterItsReleaseOrItsSession) {
  Descriptor broken = *find_strategy("etcd");
  broken.make = [](const Context& context) { return std::make_unique<LeavesItsPlaces>(context); };
  int after_release = 0, after_ttl = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Verdict verdict = test::must(play(broken, {.seed = seed, .clients = 1}));
    if (!verdict.finding || verdict.finding->oracle != Oracle::left_behind) continue;
    const bool late = verdict.finding->what.ends_with("after its TTL");
    ++(late ? after_ttl : after_release);
  }
  EXPECT_GT(after_release, 0);
  EXPECT_GT(after_ttl, 0);
}

}  // namespace
}  // namespace lockbench::simulate
