#include "testbed/servers/redis_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "testbed/process/parallel.h"

namespace lockbench::testbed {
namespace {

using Clock = std::chrono::steady_clock;
using Facts = std::map<std::string, std::string>;
using Done = tl::expected<void, std::string>;

constexpr std::chrono::seconds kInStepWithin{10};

/// Replication begins at once and notices a lost peer soon.
constexpr std::array<const char*, 2> kQuickReplication = {"repl-diskless-sync-delay 0",
                                                          "repl-ping-replica-period 1"};

/// Waits until nothing is missing.
Done await_nothing(const std::function<std::string()>& missing) {
  constexpr std::chrono::milliseconds kPause{5};
  const auto deadline = Clock::now() + kInStepWithin;
  std::string still = missing();
  while (!still.empty()) {
    if (Clock::now() > deadline) {
      return tl::unexpected(
          fmt::format("replication did not begin within {} s: {}", kInStepWithin.count(), still));
    }
    std::this_thread::sleep_for(kPause);
    still = missing();
  }
  return {};
}

bool is(const Facts& facts, const std::string& field, std::string_view value) {
  const auto found = facts.find(field);
  return found != facts.end() && found->second == value;
}

/// Empty once `replicas` of them have all that this primary has written. The state in INFO is not
/// enough: a replica that acknowledges before the primary has noticed that all data is sent counts
/// as online, but is sent nothing for another second. PUBLISH is replicated and leaves no data
/// behind.
std::string missing_at(const Server& primary, std::size_t replicas) {
  const auto both = [](std::string_view answer) {
    return std::count(answer.begin(), answer.end(), '\n') == 2;
  };
  const auto answer = ask_redis(
      primary, fmt::format("PUBLISH lockbench in-step\r\nWAIT {} 100\r\n", replicas), both);
  if (!answer) return fmt::format("{}: {}", primary.address(), answer.error());
  const std::string_view there = std::string_view(*answer).substr(answer->find('\n') + 1);
  if (there == fmt::format(":{}\r\n", replicas)) return {};
  return fmt::format("of {} replicas the primary has {}", replicas,
                     there.substr(0, there.find('\r')));
}

/// What is missing until the replicas from this one on are in step; else empty.
std::string missing(RedisGroup& group, std::size_t first) {
  for (std::size_t i = first; i < group.replicas(); ++i) {
    const auto facts = replication_facts(group.replica(i));
    if (!facts) return facts.error();
    if (!is(*facts, "master_link_status", "up")) return fmt::format("replica {} has no link", i);
  }
  return missing_at(group.primary(), group.replicas() - first);
}

Done told(const Server& server, std::string_view command, std::string_view what) {
  const auto answer = ask_redis_line(server, command);
  if (answer && answer->starts_with("+OK")) return {};
  return tl::unexpected(fmt::format("{}: {}", what, answer ? *answer : answer.error()));
}

}  // namespace

tl::expected<Facts, std::string> replication_facts(const Server& server) {
  // A bulk string of lines ends with an empty line; an error is one line.
  const auto whole = [](std::string_view answer) {
    return answer.ends_with(answer.starts_with('$') ? "\r\n\r\n" : "\r\n");
  };
  const auto answer = ask_redis(server, "INFO replication\r\n", whole);
  if (!answer) return tl::unexpected(fmt::format("{}: {}", server.address(), answer.error()));
  if (!answer->starts_with('$')) {
    return tl::unexpected(
        fmt::format("{}: {}", server.address(), answer->substr(0, answer->find("\r\n"))));
  }
  Facts facts;
  std::istringstream lines(*answer);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    facts.emplace(line.substr(0, colon), line.substr(colon + 1, line.find('\r') - colon - 1));
  }
  return facts;
}

Proxy* RedisGroup::replication(std::size_t replica) {
  return lines_.empty() ? nullptr : lines_.at(replica % lines_.size()).get();
}

Done RedisGroup::await_in_step() {
  return await_nothing([this] { return missing(*this, 0); });
}

Done RedisGroup::follow(std::size_t index) {
  return told(replica(index), fmt::format("REPLICAOF 127.0.0.1 {}", primary().port()),
              "following the new primary");
}

Done RedisGroup::fail_over() {
  if (replicas_.empty()) return tl::unexpected<std::string>("there is no replica to promote");
  return attempt([&] {
    need(told(replica(0), "REPLICAOF NO ONE", "promotion"));
    std::swap(primary_, replicas_.front());
    for (std::size_t i = 1; i < replicas_.size(); ++i) need(follow(i));
  });
}

Done RedisGroup::await_followers() {
  return await_nothing([this] { return missing(*this, 1); });
}

Done RedisGroup::rejoin() {
  return replica(0).restart(true).and_then([&] { return follow(0); }).and_then([&] {
    return await_in_step();
  });
}

Done RedisGroup::lead_again() {
  return told(primary(), "REPLICAOF NO ONE", "leading again").and_then([&] {
    return await_in_step();
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
      // In the configuration rather than by command: a replica that is restarted is a replica
      // again.
      RedisOptions own = server;
      own.config.push_back(fmt::format("replicaof 127.0.0.1 {}", sources[i % sources.size()]));
      group->replicas_[i] = need(start_redis(testbed, own));
    });
    need(group->await_in_step());
    return std::move(group);
  });
}

}  // namespace lockbench::testbed
