#include "testbed/servers/redis_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "testbed/process/parallel.h"

namespace lockbench::testbed {
namespace {

using Done = tl::expected<void, std::string>;

constexpr std::chrono::seconds kInStepWithin{10};
constexpr std::string_view kNoReplication = "replication did not begin";

/// Replication begins immediately and notices a lost peer soon.
constexpr std::array<const char*, 2> kQuickReplication = {"repl-diskless-sync-delay 0",
                                                          "repl-ping-replica-period 1"};

/// Waits until nothing is missing; `without` begins the error.
Done await_nothing(std::string_view without, std::chrono::milliseconds within,
                   const std::function<std::string()>& missing) {
  std::string still;
  if (comes_true(within, [&] { return (still = missing()).empty(); })) return {};
  return tl::unexpected(fmt::format("{} within {} ms: {}", without, within.count(), still));
}

/// Empty once `replicas` replicas have all writes of this primary. The state in INFO does not show
/// that: a replica that acknowledges before the primary has noticed that all data is sent counts as
/// online, but is sent nothing for another second. PUBLISH is replicated and leaves no data behind.
std::string missing_once(const Server& primary, std::size_t replicas) {
  const auto answer =
      ask_redis(primary, fmt::format("PUBLISH lockbench in-step\r\nWAIT {} 100", replicas));
  if (!answer) return fmt::format("{}: {}", primary.address(), answer.error());
  const std::string_view there = std::string_view(*answer).substr(answer->find('\n') + 1);
  if (there == fmt::format(":{}\r\n", replicas)) return {};
  return fmt::format("of {} replicas the primary has {}", replicas,
                     there.substr(0, there.find('\r')));
}

/// Asks twice, as what was written first may have come with the snapshot.
std::string missing_at(const Server& primary, std::size_t replicas) {
  const std::string missing = missing_once(primary, replicas);
  return missing.empty() ? missing_once(primary, replicas) : missing;
}

// Sentinels.

constexpr std::chrono::seconds kAcquaintedWithin{20};

constexpr int kSentinels = 3;
/// The master's name for clients.
constexpr std::string_view kName = "lock";
/// Silence after which the primary counts as down. Short, but longer than a busy machine's pauses.
constexpr std::chrono::milliseconds kDownAfter{1000};

/// A sentinel rewrites this file with its findings.
std::string configuration(const Testbed& testbed, std::uint16_t primary, const TlsFiles* tls,
                          std::uint16_t port) {
  return redis_access_config(testbed, port, tls) +
         fmt::format(
             "user default off\n"
             "bind 127.0.0.1\ndaemonize no\nlogfile \"\"\n"
             "sentinel sentinel-user {4}\nsentinel sentinel-pass {5}\n"
             "sentinel monitor {0} 127.0.0.1 {1} {2}\n"
             "sentinel auth-user {0} {4}\nsentinel auth-pass {0} {5}\n"
             "sentinel down-after-milliseconds {0} {3}\n"
             "sentinel failover-timeout {0} 10000\n",
             kName, primary, kSentinels / 2 + 1, kDownAfter.count(), kUser, testbed.secret());
}

std::unique_ptr<Server> start_one(Testbed& testbed, const std::string& program,
                                  std::uint16_t primary, const TlsFiles* tls, std::uint16_t port) {
  ServerSpec spec = ServerSpec::in_new_folder(testbed, kRedisSentinel.name, {port});
  const auto path = spec.folder / "sentinel.conf";
  need(testbed.write_file(path, configuration(testbed, primary, tls, port)));
  spec.argv = {program, path.string()};
  spec.url.after = fmt::format("/{}", kName);
  spec.speak("redis+sentinel", "rediss+sentinel", testbed.login(), tls);
  // The log shows that this process has the port.
  spec.ready = [](const Server& server) {
    if (server.log().find("Sentinel ID is") == std::string::npos) return false;
    return ask_redis_line(server, "PING") == "+PONG";
  };
  return need(Server::start(testbed, std::move(spec)));
}

/// A sentinel's knowledge of its masters, one line each: "master0:name=...,status=ok,address=...,
/// slaves=...,sentinels=..."
std::string knowledge(const Server& sentinel) {
  const auto answer = ask_redis(sentinel, "INFO sentinel");
  if (!answer) return answer.error();
  const std::size_t at = answer->find("master0:");
  return at == std::string::npos ? *answer : answer->substr(at, answer->find("\r\n", at) - at);
}

Done await(const std::vector<std::unique_ptr<Server>>& sentinels, std::string_view part,
           std::chrono::milliseconds within) {
  return await_nothing(fmt::format("sentinel: no {}", part), within, [&]() -> std::string {
    for (const auto& sentinel : sentinels) {
      const std::string known = knowledge(*sentinel);
      if (known.find(part) == std::string::npos) return "but " + known;
    }
    return {};
  });
}

}  // namespace

Done RedisGroup::await_in_step() {
  return await_nothing(kNoReplication, kInStepWithin,
                       [this] { return missing_at(primary(), replicas()); });
}

void RedisGroup::follow(std::size_t index) {
  tell_redis(replica(index), fmt::format("REPLICAOF 127.0.0.1 {}", primary().port()));
}

Done RedisGroup::fail_over() {
  if (replicas_.empty()) return tl::unexpected<std::string>("there is no replica to promote");
  return attempt([&] {
    tell_redis(replica(0), "REPLICAOF NO ONE");
    std::swap(primary_, replicas_.front());
    for (std::size_t i = 1; i < replicas_.size(); ++i) follow(i);
  });
}

Done RedisGroup::await_followers() {
  return await_nothing(kNoReplication, kInStepWithin,
                       [this] { return missing_at(primary(), replicas() - 1); });
}

Done RedisGroup::rejoin() {
  return attempt([&] {
    need(replica(0).restart(true));
    follow(0);
    need(await_in_step());
  });
}

Done RedisGroup::lead_again() {
  return attempt([&] {
    tell_redis(primary(), "REPLICAOF NO ONE");
    need(await_in_step());
  });
}

tl::expected<std::unique_ptr<RedisGroup>, std::string> start_redis_group(
    Testbed& testbed, const RedisGroupOptions& options) {
  RedisOptions server = options.server;
  server.config.insert(server.config.end(), kQuickReplication.begin(), kQuickReplication.end());
  std::unique_ptr<RedisGroup> group(new RedisGroup);
  return attempt([&] {
    group->primary_ = need(start_redis(testbed, server));
    std::vector<std::uint16_t> sources;
    const int lines = options.proxies == nullptr ? 0 : options.proxy_each ? options.replicas : 1;
    for (int line = 0; line < lines; ++line) {
      group->lines_.push_back(need(start_proxy(*options.proxies, group->primary_->port())));
      sources.push_back(group->lines_.back()->port());
    }
    if (sources.empty()) sources.push_back(group->primary_->port());
    group->replicas_.resize(static_cast<std::size_t>(options.replicas));
    in_parallel(group->replicas_.size(), [&](std::size_t i) {
      // In the configuration rather than by command, so that a restarted replica is a replica
      // again.
      RedisOptions own = server;
      own.config.push_back(fmt::format("replicaof 127.0.0.1 {}", sources[i % sources.size()]));
      group->replicas_[i] = need(start_redis(testbed, own));
    });
    need(group->await_in_step());
    return std::move(group);
  });
}

Done SentinelGroup::await_master(std::uint16_t port, std::chrono::milliseconds within) {
  return await(sentinels_, fmt::format("address=127.0.0.1:{},", port), within);
}

tl::expected<std::unique_ptr<SentinelGroup>, std::string> start_sentinels(Testbed& testbed,
                                                                          std::uint16_t primary,
                                                                          const TlsFiles* tls) {
  return attempt([&] {
    const std::string program = need(find_program(kRedisSentinel)).string();
    std::vector<std::unique_ptr<Server>> sentinels;
    sentinels.reserve(kSentinels);
    for (int i = 0; i < kSentinels; ++i) {
      sentinels.push_back(
          need(start_on_free_port<Server>(testbed.choose_port, [&](std::uint16_t port) {
            return start_one(testbed, program, primary, tls, port);
          })));
    }
    need(await(
        sentinels,
        fmt::format("status=ok,address=127.0.0.1:{},slaves=1,sentinels={}", primary, kSentinels),
        kAcquaintedWithin));
    return std::make_unique<SentinelGroup>(std::move(sentinels));
  });
}

}  // namespace lockbench::testbed
