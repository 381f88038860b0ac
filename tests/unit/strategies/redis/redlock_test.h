#pragma once

#include "strategies/observer.h"
#include "tests/unit/strategies/redis/redis_lock_test.h"

namespace lockbench::redis {

/// Fake servers on the same simulated time: node0, node1, … The databases of one are servers apart:
/// node0/2 is what node2 is.
class FakeNodes : public ConnectionFactory {
 public:
  FakeNodes(SimClock& clock, int nodes) {
    for (int i = 0; i < nodes; ++i) nodes_.emplace_back(clock);
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

/// Records what it sees.
struct Votes : StrategyObserver {
  struct Told {
    int node = 0;
    Vote vote = Vote::failed;
    Duration taken{};
    bool late = false;
  };

  void on_vote(int node, Vote vote, Duration taken, bool late) override {
    told.push_back({node, vote, taken, late});
  }
  void on_round(bool split, std::optional<Duration> validity) override {
    rounds.emplace_back(split, validity);
  }
  int count(Vote vote, bool late = false) const {
    int found = 0;
    for (const Told& one : told) found += one.vote == vote && one.late == late ? 1 : 0;
    return found;
  }

  std::vector<Told> told;
  std::vector<std::pair<bool, std::optional<Duration>>> rounds;
};

/// Sequential and parallel.
class RedlockTest : public testing::TestWithParam<std::string_view> {
 protected:
  static constexpr std::size_t kNodes = 5;

  RedlockTest() {
    for (std::size_t i = 0; i < kNodes; ++i) {
      endpoints_["redis"].push_back("redis://node" + std::to_string(i) + ":1");
    }
    services_.provide<ConnectionFactory>(nodes_);
    services_.provide<StrategyObserver>(votes_);
    services_.provide<RenewalScheduler>(scheduler_);
  }

  RedisClient& client() {
    const auto number = static_cast<int>(clients_.size());
    return clients_.emplace_back(clock_, GetParam(), endpoints_, services_, number, options_);
  }
  bool in_parallel() const { return GetParam() == "redlock-parallel"; }

  /// Another client holds the lock on these nodes.
  void occupy(std::initializer_list<std::size_t> nodes) {
    for (const std::size_t node : nodes) (*nodes_)[node].set("k", "another");
  }
  /// On how many nodes the key is one of these clients'.
  int held() {
    int found = 0;
    for (FakeRedis& node : nodes_->all()) found += node.value("k").value_or("another") != "another";
    return found;
  }
  void forget_commands() {
    for (FakeRedis& node : nodes_->all()) node.take_commands();
  }

  SimClock clock_;
  Endpoints endpoints_;
  StrategyOptions options_;
  std::shared_ptr<FakeNodes> nodes_ = std::make_shared<FakeNodes>(clock_, kNodes);
  std::shared_ptr<Votes> votes_ = std::make_shared<Votes>();
  StrategyObserver ignores_renewals_;
  std::shared_ptr<RenewalScheduler> scheduler_ = std::make_shared<RenewalScheduler>(
      std::make_unique<SimEnv>(clock_), ignores_renewals_, RenewalScheduler::Drive::by_hand);
  Services services_;
  std::deque<RedisClient> clients_;
};

}  // namespace lockbench::redis
