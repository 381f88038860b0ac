#include <fmt/format.h>

#include <algorithm>

#include "tests/conformance/redis-wait/replicated_store.h"
#include "tests/support/eventually.h"

namespace lockbench::test {

ReplicatedStore::ReplicatedStore() {
  testbed::RedisGroupOptions options{.replicas = kReplicas};
  options.server.durable = false;
  auto group = testbed::start_redis_group(shared_testbed(), options);
  if (!group) throw std::runtime_error(group.error());
  group_ = *std::move(group);
}

int ReplicatedStore::other_connections() {
  // One of them is the probe's own.
  const std::string clients = probe().ask({"CLIENT", "LIST", "TYPE", "normal"});
  return static_cast<int>(std::count(clients.begin(), clients.end(), '\n')) - 1;
}

void ReplicatedStore::settle() {
  if (!eventually([this] { return replicas_follow(); })) {
    throw std::runtime_error("the replicas do not follow their primary");
  }
}

bool ReplicatedStore::replicas_follow() {
  for (std::size_t i = 0; i < kReplicas; ++i) {
    if (!says_of_replication(group_->replica(i), "master_link_status:up")) return false;
  }
  // Replicas are assumed to have everything written before they came, so write twice.
  RedisProbe& primary = probe();
  const std::string all = std::to_string(kReplicas);
  for (int i = 0; i < 2; ++i) {
    primary.ask({"SET", "settled", "1"});
    if (primary.ask({"WAIT", all, "100"}) != all) return false;
  }
  primary.remove({"settled"});
  return true;
}

namespace {

const TestedStoreRegistration registration({.name = "redis-wait",
                                            .backends = {"redis-replicated"},
                                            .shared = the_one<ReplicatedStore>,
                                            .make = another<ReplicatedStore>,
                                            .properties = service_properties});

}  // namespace

}  // namespace lockbench::test
