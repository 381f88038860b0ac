#include <fmt/format.h>

#include "hazards/client_process.h"
#include "hazards/stage.h"
#include "strategies/etcd/chubby_keys.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/txn.h"
#include "testbed/servers/etcd_server.h"

namespace lockbench::hazards {
namespace {

constexpr std::size_t kMembers = 3;

/// One etcd, or three members.
class EtcdStage : public Stage {
 public:
  explicit EtcdStage(Ground ground) : ground_(ground) {}

  tl::expected<void, std::string> open(House& house) {
    if (ground_ == Ground::replicated) {
      auto cluster = testbed::start_etcd_cluster(house.testbed(), kMembers);
      if (!cluster) return tl::unexpected(cluster.error());
      cluster_ = *std::move(cluster);
      return {};
    }
    auto server = testbed::start_etcd(house.testbed());
    if (!server) return tl::unexpected(server.error());
    server_ = *std::move(server);
    return {};
  }

  Endpoints endpoints(std::uint16_t port) const override {
    if (port != 0) return {{"etcd", {fmt::format("http://127.0.0.1:{}", port)}}};
    return {{"etcd", {cluster_ ? cluster_->url() : server_->url()}}};
  }
  std::uint16_t port() const override {
    if (cluster_) throw StageFailure("a line leads to one member, and there are several");
    return server_->port();
  }
  Duration shortest_session() const override { return std::chrono::seconds(2); }

  void restart() override {
    need(server_->kill_hard());
    need(server_->restart(ground_ != Ground::volatile_));
  }

  /// One of those that follow misses what comes now.
  void cut_replication() override {
    late_ = (leader() + 1) % kMembers;
    need(cluster_->member(late_).kill_hard());
  }
  void fail_over() override {
    need(cluster_->member(leader()).kill_hard());
    need(cluster_->member(late_).restart(true));
  }

  void end_session(const std::string& key) override {
    etcd::Connection etcd = connection(endpoints(0).begin()->second.front());
    need(etcd.revoke_lease(lease_of_holder(etcd, key), key));
  }

 private:
  etcd::Connection connection(const std::string& url) {
    return {*etcd::parse_endpoint(url), std::chrono::seconds(5), *env_};
  }

  std::size_t leader() {
    for (std::size_t i = 0; i < kMembers; ++i) {
      if (!cluster_->member(i).alive()) continue;
      const auto status = need(connection(cluster_->member(i).url()).status());
      if (status.leader() == status.header().member_id()) return i;
    }
    throw StageFailure("no member of the cluster leads it");
  }

  /// Of the oldest in the lock's queue. Where that is kept apart from what outlives the session, it
  /// is what counts.
  static etcd::LeaseId lease_of_holder(etcd::Connection& etcd, const std::string& key) {
    for (const std::string& place : {etcd::queue_of(key), key + "/"}) {
      etcdserverpb::RangeRequest request;
      request.set_key(place);
      request.set_range_end(etcd::end_of_prefix(place));
      request.set_sort_target(etcdserverpb::RangeRequest::CREATE);
      request.set_sort_order(etcdserverpb::RangeRequest::ASCEND);
      request.set_limit(1);
      const auto found = need(etcd.range(key, request));
      if (found.kvs_size() > 0) return found.kvs(0).lease();
    }
    throw StageFailure("nobody holds the lock");
  }

  const Ground ground_;
  const std::unique_ptr<Env> env_ = make_system_env(0);
  std::unique_ptr<testbed::EtcdServer> server_;
  std::unique_ptr<testbed::EtcdCluster> cluster_;
  std::size_t late_ = 0;
};

tl::expected<std::shared_ptr<Stage>, NoStage> make_stage(House& house, Ground ground) {
  if (ground == Ground::clocked) {
    return tl::unexpected(NoStage{
        "etcd reads the clock past the C library, where nothing can be put in its way", true});
  }
  if (ground == Ground::cramped) return tl::unexpected(NoStage{"etcd evicts nothing", true});
  auto stage = std::make_shared<EtcdStage>(ground);
  if (auto opened = stage->open(house); !opened) return tl::unexpected(NoStage{opened.error()});
  return stage;
}

const StageRegistration registration("etcd", make_stage);

}  // namespace
}  // namespace lockbench::hazards
