#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "strategies/etcd/client/rpc.grpc.pb.h"
#include "strategies/registry.h"
#include "tests/support/fiber_lock.h"

namespace lockbench::test {
namespace {

/// Only serves leases, with a long minimum TTL. A real etcd's minimum grows with its election
/// timeout, and our servers elect quickly.
class EtcdOfLongLeases : etcdserverpb::Lease::Service {
 public:
  static constexpr std::int64_t kLeastSeconds = 5;

  EtcdOfLongLeases() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(static_cast<etcdserverpb::Lease::Service*>(this));
    server_ = builder.BuildAndStart();
  }
  EtcdOfLongLeases(const EtcdOfLongLeases&) = delete;
  EtcdOfLongLeases& operator=(const EtcdOfLongLeases&) = delete;
  ~EtcdOfLongLeases() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string url() const { return "etcd://127.0.0.1:" + std::to_string(port_); }
  /// TTLs of all leases so far, in seconds.
  std::vector<std::int64_t> granted() const {
    const std::scoped_lock lock(mutex_);
    return granted_;
  }

 private:
  grpc::Status LeaseGrant(grpc::ServerContext*, const etcdserverpb::LeaseGrantRequest* request,
                          etcdserverpb::LeaseGrantResponse* answer) override {
    const std::scoped_lock lock(mutex_);
    granted_.push_back(std::max<std::int64_t>(request->ttl(), kLeastSeconds));
    answer->set_id(static_cast<std::int64_t>(granted_.size()));
    answer->set_ttl(granted_.back());
    return grpc::Status::OK;
  }

  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::int64_t> granted_;
  std::unique_ptr<grpc::Server> server_;
};

TEST(ChubbyLeases, AreApartByTheWholeDelayWhereTheServerGrantsMoreThanWasAskedFor) {
  const EtcdOfLongLeases etcd;
  const auto env = make_system_env(1);
  Services services;
  const Endpoints endpoints{{"etcd", {etcd.url()}}};
  const StrategyOptions options{.lock_delay = std::chrono::seconds(2)};
  const auto lock =
      make_carried(*find_strategy("chubby"),
                   {.endpoints = endpoints, .options = options, .env = *env, .services = services});
  // It has no locks, but by now it has granted both leases of the session.
  const AcquireResult refused = lock->acquire({.key = "lockbench:conformance:{lock}",
                                               .ttl = std::chrono::seconds(1),
                                               .deadline = env->now(),
                                               .stop = {}});
  EXPECT_EQ(refused.outcome, AcquireOutcome::failed) << refused.reason;
  const std::vector<std::int64_t> granted = etcd.granted();
  ASSERT_EQ(granted.size(), 2U);
  EXPECT_EQ(granted[0], EtcdOfLongLeases::kLeastSeconds);
  EXPECT_EQ(granted[1] - granted[0], 2);
}

}  // namespace
}  // namespace lockbench::test
