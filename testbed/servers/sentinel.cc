#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <thread>
#include <utility>

#include "testbed/servers/redis_group.h"

namespace lockbench::testbed {
namespace {

using Clock = std::chrono::steady_clock;
using Done = tl::expected<void, std::string>;

constexpr std::chrono::seconds kAcquaintedWithin{20};

constexpr int kSentinels = 3;
/// Of the master, as clients ask for it.
constexpr std::string_view kName = "lock";
/// Silence after which the primary counts as down. Short, but longer than a busy machine's pauses.
constexpr std::chrono::milliseconds kDownAfter{1000};

/// A sentinel rewrites this file with what it learns.
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

/// What a sentinel knows of its masters, a line each: "master0:name=...,status=ok,address=...,
/// slaves=...,sentinels=..."
std::string knowledge(const Server& sentinel) {
  // The second answer shows that the first is complete.
  const auto answer = ask_redis(sentinel, "INFO sentinel\r\nPING\r\n",
                                [](std::string_view text) { return text.ends_with("+PONG\r\n"); });
  if (!answer) return answer.error();
  const std::size_t at = answer->find("master0:");
  return at == std::string::npos ? *answer : answer->substr(at, answer->find("\r\n", at) - at);
}

Done await(const std::vector<std::unique_ptr<Server>>& sentinels, std::string_view part,
           std::chrono::milliseconds within) {
  constexpr std::chrono::milliseconds kPause{20};
  const auto deadline = Clock::now() + within;
  for (const auto& sentinel : sentinels) {
    std::string known = knowledge(*sentinel);
    while (known.find(part) == std::string::npos) {
      if (Clock::now() > deadline) {
        return tl::unexpected(
            fmt::format("sentinel: no {} within {} ms, but {}", part, within.count(), known));
      }
      std::this_thread::sleep_for(kPause);
      known = knowledge(*sentinel);
    }
  }
  return {};
}

}  // namespace

Done SentinelGroup::await_master(std::uint16_t port, std::chrono::milliseconds within) {
  return await(sentinels_, fmt::format("address=127.0.0.1:{},", port), within);
}

tl::expected<std::unique_ptr<SentinelGroup>, std::string> start_sentinels(Testbed& testbed,
                                                                          std::uint16_t primary,
                                                                          const TlsFiles* tls) {
  return attempt([&] {
    const std::string program = need(find_program(kRedisSentinel)).string();
    std::vector<std::unique_ptr<Server>> sentinels;
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
