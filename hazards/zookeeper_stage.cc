#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "hazards/client_process.h"
#include "hazards/stage.h"
#include "hazards/zookeeper_visitor.h"
#include "strategies/zookeeper/client/paths.h"
#include "strategies/zookeeper/client/session.h"
#include "testbed/servers/zookeeper_server.h"

namespace lockbench::hazards {
namespace {

using zookeeper::Reply;
using zookeeper::Request;

constexpr int kMembers = 3;

/// One ZooKeeper, or an ensemble of three.
class ZookeeperStage : public Stage {
 public:
  explicit ZookeeperStage(Ground ground) : ground_(ground) {}

  tl::expected<void, std::string> open(House& house) {
    testbed::ZookeeperOptions options;
    if (ground_ == Ground::replicated) {
      auto members = testbed::start_zookeeper_ensemble(house.testbed(), kMembers, options);
      if (!members) return tl::unexpected(members.error());
      servers_ = *std::move(members);
      return {};
    }
    if (ground_ == Ground::clocked) {
      auto clock = testbed::ClockShim::make(house.testbed(), house.options().clock_shim);
      if (!clock) return tl::unexpected(clock.error());
      clock_ = *std::move(clock);
      options.clock = clock_.get();
    }
    auto server = testbed::start_zookeeper(house.testbed(), options);
    if (!server) return tl::unexpected(server.error());
    servers_.push_back(*std::move(server));
    return {};
  }

  Endpoints endpoints(std::uint16_t port) const override {
    return {{"zookeeper", {port != 0 ? fmt::format("127.0.0.1:{}", port) : addresses()}}};
  }
  std::uint16_t port() const override {
    if (servers_.size() > 1)
      throw StageFailure("a line leads to one member, and there are several");
    return servers_.front()->port();
  }
  Duration shortest_session() const override { return std::chrono::seconds(2); }

  void restart() override {
    need(servers_.front()->kill_hard());
    need(servers_.front()->restart(ground_ != Ground::volatile_));
  }

  void jump_clock(Duration ahead) override {
    clock_->set(ahead);
    // Java's run time goes by functions that a preloaded library replaces: seen, not hoped.
    const WallTime now = need(zookeeper_wall_time(addresses()));
    if (now - std::chrono::system_clock::now() < ahead / 2) {
      throw StageFailure("the server does not go by the clock that it was given");
    }
  }

  /// One of those that follow misses what comes now.
  void cut_replication() override {
    late_ = &member("follower");
    need(late_->kill_hard());
  }
  void fail_over() override {
    need(member("leader").kill_hard());
    need(late_->restart(true));
  }

  void end_session(const std::string& key) override {
    // The owner's library may reconnect in between.
    constexpr int kAttempts = 20;
    const auto visit = std::make_shared<zookeeper::Session>(*zookeeper::parse_endpoint(addresses()),
                                                            std::chrono::seconds(5), *env_,
                                                            make_system_env(0), nullptr);
    const std::string node = node_of_holder(*visit, key);
    const Reply held = ask(*visit, Request::Kind::look, node);
    if (!held.done()) throw StageFailure("nobody holds the lock");
    for (int i = 0; i < kAttempts; ++i) {
      need(end_zookeeper_session(addresses(), held.owner));
      // Somebody who waited may have made it anew already.
      const Reply now = ask(*visit, Request::Kind::look, node);
      if (!now.done() || now.owner != held.owner) return visit->close();
    }
    throw StageFailure("the session cannot be ended: its owner always comes back in time");
  }

 private:
  std::string addresses() const {
    std::vector<std::string> all;
    for (const auto& server : servers_) all.push_back(server->address());
    return fmt::format("{}", fmt::join(all, ","));
  }

  testbed::ZookeeperServer& member(std::string_view mode) const {
    for (const auto& server : servers_) {
      if (server->alive() && zookeeper_mode(*server) == mode) return *server;
    }
    throw StageFailure(fmt::format("the ensemble has no {}", mode));
  }

  static Reply ask(zookeeper::Session& visit, Request::Kind kind, const std::string& path) {
    need(visit.connect(std::chrono::seconds(5)));
    const Request request{.kind = kind, .path = path};
    return std::move(need(visit.call({&request, 1}, {})).front());
  }

  /// The lock's own node, or the first in its queue.
  static std::string node_of_holder(zookeeper::Session& visit, const std::string& key) {
    const std::string lock = zookeeper::node_of_key(key);
    auto queue = ask(visit, Request::Kind::children, lock).children;
    std::erase_if(queue, [](const auto& name) { return !zookeeper::sequence_of(name); });
    const auto first = std::min_element(queue.begin(), queue.end(), [](auto& one, auto& other) {
      return *zookeeper::sequence_of(one) < *zookeeper::sequence_of(other);
    });
    return first == queue.end() ? lock : lock + "/" + *first;
  }

  const Ground ground_;
  const std::unique_ptr<Env> env_ = make_system_env(0);
  std::unique_ptr<testbed::ClockShim> clock_;
  std::vector<std::unique_ptr<testbed::ZookeeperServer>> servers_;
  testbed::ZookeeperServer* late_ = nullptr;
};

tl::expected<std::shared_ptr<Stage>, NoStage> make_stage(House& house, Ground ground) {
  if (ground == Ground::cramped) return tl::unexpected(NoStage{"ZooKeeper evicts nothing", true});
  auto stage = std::make_shared<ZookeeperStage>(ground);
  if (auto opened = stage->open(house); !opened) return tl::unexpected(NoStage{opened.error()});
  return stage;
}

const StageRegistration registration("zookeeper", make_stage);

}  // namespace
}  // namespace lockbench::hazards
