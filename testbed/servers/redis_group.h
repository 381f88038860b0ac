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
  /// Of each server; without replication in its config.
  RedisOptions server{};
  /// If given, replicas reach their primary through a proxy that can hold up replication. Costs
  /// time and CPU on every write.
  ProxyPool* proxies = nullptr;
  /// A proxy for each replica, rather than one for all.
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

  /// Waits until every replica acknowledges what the primary writes; for at most 10 s.
  tl::expected<void, std::string> await_in_step();

  /// After the primary was killed: promotes the first replica, with the data it has, and has the
  /// others follow it; without a proxy from now on. Does not wait for these. The killed server is
  /// the first replica from now on.
  tl::expected<void, std::string> fail_over();
  /// After a failover: returns when the replicas but the killed one have the new primary's data and
  /// acknowledge what it writes.
  tl::expected<void, std::string> await_followers();
  /// Starts the first replica, which was killed, as a replica of the present primary; returns when
  /// all are in step.
  tl::expected<void, std::string> rejoin();
  /// After the primary was restarted: makes it lead again, though its configuration may still name
  /// the server that it followed first. Returns when all are in step.
  tl::expected<void, std::string> lead_again();

 private:
  friend tl::expected<std::unique_ptr<RedisGroup>, std::string> start_redis_group(
      Testbed& testbed, const RedisGroupOptions& options);
  RedisGroup() = default;
  tl::expected<void, std::string> follow(std::size_t index);

  std::unique_ptr<Server> primary_;
  std::vector<std::unique_ptr<Proxy>> lines_;  ///< one for all, or each its own
  std::vector<std::unique_ptr<Server>> replicas_;
};

/// Primary and replicas, all in step. The replicas start side by side; the wait for them is bounded
/// by 10 s.
tl::expected<std::unique_ptr<RedisGroup>, std::string> start_redis_group(
    Testbed& testbed, const RedisGroupOptions& options = {});

/// Three sentinels that watch one primary on loopback and promote its replica when it dies.
/// Thread-safe.
class SentinelGroup {
 public:
  explicit SentinelGroup(std::vector<std::unique_ptr<Server>> sentinels)
      : sentinels_(std::move(sentinels)) {}

  /// "redis+sentinel://user:secret@127.0.0.1:PORT,.../name"
  std::string url() const { return joint_url(sentinels_); }
  Server& sentinel(std::size_t index) { return *sentinels_.at(index); }
  /// Waits until all of them regard the server on this port as the master.
  tl::expected<void, std::string> await_master(std::uint16_t port,
                                               std::chrono::milliseconds within);

 private:
  const std::vector<std::unique_ptr<Server>> sentinels_;
};

/// `primary`: its port, or that of a proxy in front of it that all use; one replica follows it.
/// `tls`: that the sentinels and the servers speak; null: none.
/// Returns when all sentinels know each other, the primary and the replica; waits for 20 s at most.
tl::expected<std::unique_ptr<SentinelGroup>, std::string> start_sentinels(
    Testbed& testbed, std::uint16_t primary, const TlsFiles* tls = nullptr);

}  // namespace lockbench::testbed
