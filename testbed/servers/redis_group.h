#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/proxy/proxy.h"
#include "testbed/servers/kinds.h"

namespace lockbench::testbed {

struct RedisGroupOptions {
  int replicas = 2;
  /// For each server; its config must not set up replication.
  RedisOptions server{};
  /// If set, replicas reach their primary through a proxy that can hold up replication. Costs time
  /// and CPU on every write.
  ProxyPool* proxies = nullptr;
  /// A proxy for each replica, instead of a common one.
  bool proxy_each = false;
};

/// A primary Redis and its replicas. Thread-safe as its servers are.
class RedisGroup {
 public:
  Server& primary() { return *primary_; }
  Server& replica(std::size_t index) { return *replicas_.at(index); }
  std::size_t replicas() const { return replicas_.size(); }
  /// The proxy through which this replica reaches the primary. Null without proxies; the same one
  /// for all replicas, unless each has its own.
  Proxy* replication(std::size_t replica = 0) {
    return lines_.empty() ? nullptr : lines_.at(replica % lines_.size()).get();
  }

  /// Waits, at most 10 s, until every replica acknowledges the primary's writes.
  tl::expected<void, std::string> await_in_step();

  /// After the primary was killed: promotes the first replica, with its data, and makes the others
  /// follow it, without waiting for them and from now on without a proxy. The killed server then is
  /// the first replica.
  tl::expected<void, std::string> fail_over();
  /// After a failover: waits until all replicas but the killed one have the new primary's data and
  /// acknowledge its writes.
  tl::expected<void, std::string> await_followers();
  /// Starts the killed first replica as a replica of the current primary; returns when all are in
  /// step.
  tl::expected<void, std::string> rejoin();
  /// After a restart of the primary: makes it lead again, as its configuration may still name the
  /// server that it followed first. Returns when all are in step.
  tl::expected<void, std::string> lead_again();

 private:
  friend tl::expected<std::unique_ptr<RedisGroup>, std::string> start_redis_group(
      Testbed& testbed, const RedisGroupOptions& options);
  RedisGroup() = default;
  void follow(std::size_t index);

  std::unique_ptr<Server> primary_;
  std::vector<std::unique_ptr<Proxy>> lines_;  ///< one for all, or each its own
  std::vector<std::unique_ptr<Server>> replicas_;
};

/// Primary and replicas, all in step. The replicas start side by side; the wait for them is bounded
/// by 10 s.
tl::expected<std::unique_ptr<RedisGroup>, std::string> start_redis_group(
    Testbed& testbed, const RedisGroupOptions& options = {});

/// Three sentinels, which watch one primary on loopback and promote its replica when it dies.
/// Thread-safe.
class SentinelGroup {
 public:
  explicit SentinelGroup(std::vector<std::unique_ptr<Server>> sentinels)
      : sentinels_(std::move(sentinels)) {}

  /// "redis+sentinel://user:secret@127.0.0.1:PORT,.../name"
  std::string url() const { return joint_url(sentinels_); }
  Server& sentinel(std::size_t index) { return *sentinels_.at(index); }
  /// Waits until all regard the server on this port as the master.
  tl::expected<void, std::string> await_master(std::uint16_t port,
                                               std::chrono::milliseconds within);

 private:
  const std::vector<std::unique_ptr<Server>> sentinels_;
};

/// `primary`: its port, or the port of a proxy that all use; one replica follows it. `tls`: for the
/// sentinels and the servers; null: none. Returns when all sentinels know each other, the primary
/// and the replica; waits at most 20 s.
tl::expected<std::unique_ptr<SentinelGroup>, std::string> start_sentinels(
    Testbed& testbed, std::uint16_t primary, const TlsFiles* tls = nullptr);

}  // namespace lockbench::testbed
