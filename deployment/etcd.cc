#include "deployment/private_store.h"
#include "strategies/etcd/lock.h"
#include "testbed/servers/kinds.h"

namespace lockbench::deployment {
namespace {

/// One etcd, or a cluster. etcd does not bound the number of connections.
class EtcdStore : public PrivateStore {
 public:
  EtcdStore(testbed::Testbed& host, const StoreRequest& request)
      : PrivateStore("etcd", request.setup != Setup::volatile_, kShortestSession) {
    if (request.members > 1) {
      add_cluster(testbed::start_etcd_cluster(
          host, request.members, {.mesh = mesh_for(host, request.setup), .tls = host.tls()}));
    } else {
      add(testbed::start_etcd(host, {.tls = host.tls()}));
    }
  }

  void end_session(const std::string& key) override {
    etcd::Connection etcd(*etcd::parse_endpoint(urls().front()), std::chrono::seconds(5), *env_);
    need(etcd.revoke_lease(lease_of_holder(etcd, key), key));
  }

  /// A leader revokes 16 leases at a time, in the order of their end. These end first. When it
  /// comes to others, it is no leader any more, and passes its requests on to its successor.
  void freeze_leader() override {
    constexpr int kLeases = 24;
    etcd::Connection etcd(*etcd::parse_endpoint(urls().front()), std::chrono::seconds(5), *env_);
    for (int i = 0; i < kLeases; ++i) need(etcd.grant_lease(1, {}, {}));
    PrivateStore::freeze_leader();
  }

 private:
  /// The lease of the oldest key in the lock's queue. Strategies with other data, which outlives
  /// the session, have the queue at queue_of().
  static etcd::LeaseId lease_of_holder(etcd::Connection& etcd, const std::string& key) {
    for (const std::string& place : {etcd::queue_of(key), key + "/"}) {
      const auto found = need(etcd.list(key, place, 1));
      if (!found.empty()) return found[0].lease;
    }
    throw Failure("nobody holds the lock");
  }

  const std::unique_ptr<Env> env_ = make_system_env(0);
};

const PrivateStoreRegistration private_etcd({
    .name = "etcd",
    .program = testbed::kEtcd.name,
    .find_program = [] { return testbed::find_program(testbed::kEtcd); },
    .start = [](testbed::Testbed& host,
                const StoreRequest& request) -> std::unique_ptr<PrivateStore> {
      if (request.setup == Setup::clocked) {
        throw NotOffered("etcd reads the clock without the C library, where it could be moved",
                         NotStarted::Why::unplayable);
      }
      if (request.setup == Setup::cramped) throw NotOffered("etcd evicts nothing");
      return std::make_unique<EtcdStore>(host, request);
    },
    .clusters = true,
});

}  // namespace
}  // namespace lockbench::deployment
