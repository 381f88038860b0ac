#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/observer.h"
#include "strategies/redis/client/quorum_node.h"
#include "strategies/redis/redlock_lock.h"
#include "tests/support/test_names.h"
#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {
namespace {

/// Five fake servers: node0, node1, … Databases of one count as separate servers: node0/2 is the
/// same as node2.
class FakeNodes : public ConnectionFactory {
 public:
  explicit FakeNodes(SimClock& clock) {
    for (int i = 0; i < 5; ++i) nodes_.emplace_back(clock);
  }

  std::unique_ptr<Connection> make(const Endpoint& endpoint, const Timeouts& timeouts,
                                   Env& env) override {
    return of(endpoint).make(endpoint, timeouts, env);
  }
  std::unique_ptr<Subscriber> make_subscriber(const Endpoint& endpoint, const Timeouts& timeouts,
                                              Env& env) override {
    return of(endpoint).make_subscriber(endpoint, timeouts, env);
  }

  FakeRedis& operator[](std::size_t node) { return nodes_.at(node); }
  std::deque<FakeRedis>& all() { return nodes_; }

 private:
  FakeRedis& of(const Endpoint& endpoint) {
    const int number = std::stoi(endpoint.host.substr(4)) + endpoint.database;
    return nodes_.at(static_cast<std::size_t>(number));
  }

  std::deque<FakeRedis> nodes_;
};

/// Records votes.
struct Votes : StrategyObserver {
  void on_vote(int /*node*/, Vote vote, Duration /*taken*/, bool late) override {
    ++count[{vote, late}];
  }
  void on_round(bool split, std::optional<Duration> validity) override {
    rounds.emplace_back(split, validity);
  }

  std::map<std::pair<Vote, bool>, int> count;  ///< by vote and whether it was late
  std::vector<std::pair<bool, std::optional<Duration>>> rounds;
};

/// Sequential and parallel.
class RedlockTest : public FakeServersTest<FakeNodes>,
                    public testing::WithParamInterface<std::string_view> {
 protected:
  RedlockTest() {
    for (std::size_t i = 0; i < nodes_.all().size(); ++i) {
      endpoints_["redis"].push_back("redis://node" + std::to_string(i) + ":1");
    }
    services_.provide<StrategyObserver>(votes_);
  }

  RedisClient& client() { return FakeServersTest::client(GetParam()); }
  bool in_parallel() const { return GetParam() == "redlock-parallel"; }

  /// Lets another client hold the lock on these nodes.
  void occupy(std::initializer_list<std::size_t> nodes) {
    for (const std::size_t node : nodes) nodes_[node].set("k", "another");
  }
  /// Number of nodes on which one of these clients has the key.
  int held() {
    int found = 0;
    for (FakeRedis& node : nodes_.all()) found += node.value("k").value_or("another") != "another";
    return found;
  }
  void forget_commands() {
    for (FakeRedis& node : nodes_.all()) node.take_commands();
  }

  FakeNodes& nodes_ = *servers_;
  const std::shared_ptr<Votes> votes_ = std::make_shared<Votes>();
};

using testing::HasSubstr;

TEST(Quorum, ArithmeticIsAsPublished) {
  for (const auto& [nodes, majority] :
       std::map<int, int>{{1, 1}, {2, 2}, {3, 2}, {4, 3}, {15, 8}}) {
    EXPECT_EQ(majority_of(nodes), majority) << nodes;
  }
  EXPECT_EQ(drift_of(10s), 102ms);
  EXPECT_EQ(drift_of(100ms), 3ms);
  EXPECT_EQ(validity_of(10s, 398ms), 9500ms);
  EXPECT_LT(validity_of(1ms, 0ms), 0ms) << "shorter than its own drift";
  EXPECT_EQ(node_timeout_of(10s), 50ms);
  EXPECT_EQ(node_timeout_of(200ms), 10ms);
}

TEST_P(RedlockTest, ThreeOfFiveAreAMajorityAndTwoAreNot) {
  occupy({1, 4});
  RedisClient& a = client();
  const TimePoint start = clock_.now();
  const Lease lease = a.must_acquire(1500ms);
  EXPECT_EQ(lease.state->valid_until(), start + 1500ms - 17ms);
  EXPECT_EQ(held(), 3);
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  EXPECT_EQ(held(), 0);

  occupy({0});
  forget_commands();
  EXPECT_EQ(a.acquire().outcome, AcquireOutcome::refused);
  EXPECT_EQ(held(), 0) << "what was granted is given back";
  for (FakeRedis& node : nodes_.all()) {
    const Commands sent = node.take_commands();
    ASSERT_EQ(sent.size(), 2U) << "and so it is where it was refused";
    EXPECT_THAT(sent[1], HasSubstr("release_if_token"));
  }
}

TEST_P(RedlockTest, ReportsASplitRound) {
  occupy({3, 4});
  RedisClient& a = client();
  a.lock->release(a.must_acquire());
  ASSERT_EQ(votes_->rounds.size(), 1U);
  EXPECT_FALSE(votes_->rounds[0].first) << "won";
  ASSERT_TRUE(votes_->rounds[0].second);
  EXPECT_GT(*votes_->rounds[0].second, 9s);
  occupy({2});
  a.acquire();
  EXPECT_TRUE(votes_->rounds.at(1).first);
  EXPECT_FALSE(votes_->rounds[1].second);
  occupy({0, 1});
  a.acquire();
  EXPECT_FALSE(votes_->rounds.at(2).first) << "all somebody else's";
}

TEST_P(RedlockTest, GrantsNothingWithoutValidityLeft) {
  options_.node_timeout = 1s;
  for (FakeRedis& node : nodes_.all()) node.set_answer_delay(98ms);
  RedisClient& a = client();
  EXPECT_EQ(a.acquire(100ms).outcome, AcquireOutcome::refused)
      << "2 ms less than the TTL, 3 are drift";
  EXPECT_EQ(votes_->rounds.back().second, std::nullopt);
  clock_.advance(1s);
  EXPECT_EQ(held(), 0);
  for (FakeRedis& node : nodes_.all()) {
    EXPECT_THAT(node.take_commands().back(), HasSubstr("release_if_token"));
  }
}

TEST_P(RedlockTest, AsksASilentNodeEveryTimeAndReleasesOnIt) {
  nodes_[1].set_answer_delay(1h);
  RedisClient& a = client();
  constexpr int kSections = 120;  // beyond the answer timeout, with room for all requests
  TimePoint begin = clock_.now();
  int asked = 0;
  for (int i = 0; i < kSections; ++i) {
    const Lease lease = a.must_acquire();
    for (const std::string& command : nodes_[1].take_commands()) {
      asked += command.starts_with("SET k " + lease.token) ? 1 : 0;
    }
    EXPECT_EQ(held(), 5) << i;
    EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
    EXPECT_EQ(held(), 0) << i;
  }
  EXPECT_EQ(asked, kSections);
  // If nodes are asked in turn, each acquisition and release waits for it once.
  const Duration waited = in_parallel() ? 0ms : kSections * 2 * 50ms;
  EXPECT_GE(clock_.now() - begin, waited);
  EXPECT_LE(clock_.now() - begin, waited + kSections * 1ms);
}

TEST_P(RedlockTest, ConnectsToANodeInTheTimeThatItHasToAnswer) {
  nodes_[2].set_connect_time(1h);
  nodes_[4].set_connect_time(30ms);
  nodes_[4].set_answer_delay(1h);
  RedisClient& a = client();
  const TimePoint begin = clock_.now();
  a.must_acquire();
  EXPECT_LE(clock_.now() - begin, in_parallel() ? 1ms : 2 * 50ms + 1ms);
}

TEST_P(RedlockTest, WithoutAMajorityNothingIsGrantedOrLeftBehind) {
  for (const std::size_t node : {1, 2, 3}) nodes_[node].refuse_connections(true);
  RedisClient& a = client();
  const TimePoint begin = clock_.now();
  const AcquireResult result = a.acquire(10s, 1s);
  EXPECT_EQ(result.outcome, AcquireOutcome::failed);
  EXPECT_LE(clock_.now() - begin, 50ms);
  EXPECT_EQ(held(), 0);
  EXPECT_FALSE(client().lock->connect());
  // It is asked again as soon as there is a majority.
  nodes_[2].refuse_connections(false);
  a.must_acquire();
}

TEST_P(RedlockTest, RepeatsALostRelease) {
  RedisClient& a = client();
  const Lease lease = a.must_acquire();
  nodes_[0].fail(1, Failure::request_lost);
  nodes_[0].refuse_connections(true);
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
  EXPECT_EQ(held(), 1) << "it could not be reached";
  nodes_[0].refuse_connections(false);
  clock_.advance(5s);
  const Lease next = a.must_acquire();
  EXPECT_NE(nodes_[0].value("k"), lease.token);
  a.lock->release(next);
  EXPECT_EQ(held(), 0);
}

TEST_P(RedlockTest, WaitsARandomTimeBetweenRounds) {
  occupy({0, 1, 2, 3, 4});
  RedisClient& a = client();
  EXPECT_EQ(a.acquire(10s, 2s).outcome, AcquireOutcome::timed_out);
  const auto& waits = a.env.waits();
  ASSERT_GE(waits.size(), 8U);
  for (std::size_t i = 0; i + 1 < waits.size(); ++i) {  // the last one is cut short
    EXPECT_GE(waits[i].asked, 50ms);
    EXPECT_LE(waits[i].asked, 250ms);
  }
  EXPECT_NE(waits[0].asked, waits[1].asked);
  options_.wait = WaitPolicy::poll(7ms);
  RedisClient& b = client();
  b.acquire(10s, 1s);
  EXPECT_EQ(b.env.waits().at(0).asked, 7ms) << "what the options say instead";
}

TEST_P(RedlockTest, ARoundEndsSoonAfterTheDeadline) {
  options_.node_timeout = 100ms;
  for (FakeRedis& node : nodes_.all()) node.set_answer_delay(10s);
  RedisClient& a = client();
  const TimePoint begin = clock_.now();
  // In parallel, a majority was asked in time and may have granted it. In turn it was not: the time
  // was up, and nodes that were not asked did not fail.
  EXPECT_EQ(a.acquire(10s, 20ms).outcome,
            in_parallel() ? AcquireOutcome::unknown : AcquireOutcome::timed_out);
  EXPECT_EQ((votes_->count[{Vote::failed, false}]), in_parallel() ? 5 : 2);
  EXPECT_LE(clock_.now() - begin, 20ms + 100ms + 1ms);
}

TEST_P(RedlockTest, RenewalNeedsAMajorityToo) {
  RedisClient& a = client();
  const Lease lease = a.must_acquire(1s);
  occupy({0, 1});
  const TimePoint start = clock_.now();
  EXPECT_EQ(a.lock->renew(lease, 5s).outcome, RenewOutcome::renewed);
  EXPECT_EQ(lease.state->valid_until(), start + 5s - 52ms);
  for (const std::size_t node : {2, 3}) nodes_[node].refuse_connections(true);
  for (const std::size_t node : {2, 3}) nodes_[node].fail(1, Failure::request_lost);
  EXPECT_EQ(a.lock->renew(lease, 7s).outcome, RenewOutcome::failed);
  EXPECT_EQ(lease.state->valid_until(), start + 5s - 52ms) << "unchanged";
  EXPECT_FALSE(lease.state->lost_at());
}

TEST_P(RedlockTest, LosesTheLeaseIfAMajorityIsAnotherClientsAndANodeIsDead) {
  RedisClient& a = client();
  const Lease lease = a.must_acquire(1s);
  occupy({1, 2, 3, 4});
  nodes_[0].refuse_connections(true);
  nodes_[0].fail(1, Failure::request_lost);
  // The first answers are one failure and two refusals, which may mean a lost lease or a failed
  // renewal.
  for (const std::size_t node : {3, 4}) nodes_[node].set_answer_delay(1ms);
  EXPECT_EQ(a.lock->renew(lease, 5s).outcome, RenewOutcome::not_owner);
  EXPECT_TRUE(lease.state->lost_at());
  EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::not_owner);
}

/// Even on nodes that differ only in their database.
TEST_P(RedlockTest, ATimerRenewsOnAllNodes) {
  endpoints_["redis"] = {"redis://node0:1/0", "redis://node0:1/1", "redis://node0:1/2"};
  options_.renew = RenewPolicy{.kind = RenewPolicy::Kind::automatic};
  const Lease lease = client().must_acquire(900ms);
  forget_commands();
  nodes_[1].refuse_connections(true);
  clock_.advance(300ms);
  const TimePoint renewed_at = clock_.now();
  scheduler_->run_due();
  EXPECT_EQ(lease.state->valid_until(), renewed_at + 900ms - 11ms);
  for (const std::size_t node : {0, 2}) {
    EXPECT_THAT(nodes_[node].take_commands().at(0), HasSubstr("renew_if_token"));
  }
}

/// After two failures both nodes are being skipped.
TEST_P(RedlockTest, ALostReleaseIsRepeatedAtTheLatestWhenTheClientIsDestroyed) {
  for (const int failures : {1, 2}) {
    RedisClient& a = client();
    const Lease lease = a.must_acquire();
    const auto connect_in = [&](Duration time) {
      for (const std::size_t node : {0, 3}) nodes_[node].set_connect_time(time);
    };
    for (const std::size_t node : {0, 3}) {
      for (int n = 1; n <= failures; ++n) nodes_[node].fail(n, Failure::request_lost);
    }
    if (failures == 1) connect_in(30ms);
    EXPECT_EQ(a.lock->release(lease).outcome, ReleaseOutcome::released);
    EXPECT_TRUE(failures == 2 || held() == 2) << "no connection comes at once";
    connect_in(30ms);
    const TimePoint begin = clock_.now();
    a.lock.reset();
    EXPECT_EQ(held(), 0);
    EXPECT_LE(clock_.now() - begin, 50ms) << "all are waited for together";
    connect_in({});
  }
}

INSTANTIATE_TEST_SUITE_P(, RedlockTest, testing::Values("redlock", "redlock-parallel"),
                         [](const auto& tested) { return test::test_name_of(tested.param); });

class QuorumNodeTest : public testing::Test {
 protected:
  NodeRequestPtr request(NodeRequest::Kind kind, int token) const {
    return std::make_shared<NodeRequest>(
        NodeRequest{.kind = kind, .key = "k", .token = std::to_string(token), .ttl = 1min});
  }

  SimClock clock_;
  SimEnv env_{clock_};
  FakeRedis redis_{clock_};
  Votes votes_;
  QuorumNode node_{0, redis_.make({.host = "fake"}, 1s, env_), 1s, votes_, env_};
};

TEST_F(QuorumNodeTest, PendingReleasesAreBounded) {
  ASSERT_TRUE(node_.ready(50ms));
  for (int i = 0; i < 1000; ++i) node_.ask(request(NodeRequest::Kind::acquire, i));
  redis_.refuse_connections(true);
  redis_.fail(1, FakeRedis::Failure::not_sent);
  node_.ask(request(NodeRequest::Kind::acquire, 1000));
  EXPECT_FALSE(node_.ready(50ms)) << "the connection is gone";
  for (int i = 0; i <= 1000; ++i) node_.skip(request(NodeRequest::Kind::release, i));
  EXPECT_GT(node_.pending_releases(), 100U);
  EXPECT_LE(node_.pending_releases(), 256U);
}

TEST_F(QuorumNodeTest, HasNoPendingReleaseOfWhatItWasNeverAsked) {
  redis_.refuse_connections(true);
  EXPECT_FALSE(node_.ready(50ms));
  node_.skip(request(NodeRequest::Kind::acquire, 1));
  node_.skip(request(NodeRequest::Kind::release, 1));
  EXPECT_EQ(node_.pending_releases(), 0U);
}

TEST_F(QuorumNodeTest, ALockThatHasExpiredIsNotReleased) {
  ASSERT_TRUE(node_.ready(50ms));
  redis_.fail(1, FakeRedis::Failure::answer_lost);
  node_.ask(request(NodeRequest::Kind::acquire, 1));
  ASSERT_TRUE(node_.answer());
  redis_.refuse_connections(true);
  EXPECT_FALSE(node_.ready(50ms));
  node_.skip(request(NodeRequest::Kind::release, 1));
  EXPECT_EQ(node_.pending_releases(), 1U);
  redis_.refuse_connections(false);
  clock_.advance(2min);
  redis_.take_commands();
  ASSERT_TRUE(node_.ready(50ms));
  node_.ask(request(NodeRequest::Kind::acquire, 2));
  EXPECT_EQ(redis_.take_commands(), (std::vector<std::string>{"SET k 2 NX PX 60000"}));
}

}  // namespace
}  // namespace lockbench::redis
