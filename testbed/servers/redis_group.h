#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/proxy/proxy.h"
#include "testbed/servers/redis_server.h"

namespace lockbench::testbed {

struct RedisGroupOptions {
  int replicas = 2;
  /// Of each server; without a password, and without replication in its config.
  RedisOptions server{};
  /// If given, replicas reach their primary through a proxy, so that faults can be put between
  /// them. Costs time and CPU on every write.
  ProxyPool* proxies = nullptr;
  /// A proxy for each replica, rather than one for all.
  bool proxy_each = false;
};

/// A primary Redis and its replicas. Thread-safe as its servers are.
class RedisGroup {
 public:
  RedisServer& primary() { return *primary_; }
  RedisServer& replica(std::size_t index) { return *replicas_.at(index); }
  std::size_t replicas() const { return replicas_.size(); }
  /// What lies between the primary and this replica: its server is the primary. Null without
  /// proxies; the same for all, unless each has its own.
  Proxy* replication(std::size_t replica = 0);

  /// Waits until every replica's link is up and acknowledges what the primary writes, as after the
  /// start; for 10 s.
  tl::expected<void, std::string> await_in_step();

  /// Makes a replica a primary of its own, with the data it has. The others go on following the
  /// first primary.
  tl::expected<void, std::string> promote(std::size_t index);
  /// The others follow the one that was promoted, have its data, and acknowledge what it writes
  /// when this returns.
  tl::expected<void, std::string> rally(std::size_t promoted);

  /// After the primary's death its first replica takes its place, and the others follow that. The
  /// dead one is the first replica from now on. Not for groups whose replication has a proxy.
  tl::expected<void, std::string> fail_over();
  /// Brings the first replica, which is dead, back as a replica of the present primary; returns
  /// when all are in step.
  tl::expected<void, std::string> rejoin();
  /// After the primary was restarted, which forgets that it was a replica once: it leads, and
  /// all are in step when this returns.
  tl::expected<void, std::string> lead_again();

 private:
  friend tl::expected<std::unique_ptr<RedisGroup>, std::string> start_redis_group(
      Testbed& testbed, const RedisGroupOptions& options);
  RedisGroup() = default;
  tl::expected<void, std::string> follow(std::size_t index);

  std::unique_ptr<RedisServer> primary_;
  std::vector<std::unique_ptr<Proxy>> lines_;  ///< one for all, or each its own
  std::vector<std::unique_ptr<RedisServer>> replicas_;
};

/// What a Redis without a password says of its replication: the fields of INFO replication.
tl::expected<std::map<std::string, std::string>, std::string> replication_facts(
    const RedisServer& server);

/// Primary and replicas, all in step: every replica's link is up, and the primary counts them all.
/// The replicas start side by side; the wait for them is bounded by 10 s.
tl::expected<std::unique_ptr<RedisGroup>, std::string> start_redis_group(
    Testbed& testbed, const RedisGroupOptions& options = {});

}  // namespace lockbench::testbed
