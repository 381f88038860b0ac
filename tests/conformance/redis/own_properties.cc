#include "tests/conformance/redis/own_properties.h"

#include <algorithm>

#include "tests/conformance/common/bench.h"

namespace lockbench::test {
namespace {

bool uses_redis(const Descriptor& descriptor) { return descriptor.backend == "redis"; }

/// EVALSHA is answered by NOSCRIPT once, and followed by EVAL, not more.
std::string survives_a_script_flush(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  RedisProbe(shared_redis().port()).ask({"SCRIPT", "FLUSH"});
  RedisMonitor monitor(shared_redis().port());
  const AcquireResult held = client->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  const ReleaseOutcome released = client->release(*held.lease);
  if (released != ReleaseOutcome::released)
    return fmt::format("release gave {}", name_of(released));
  const std::vector<std::string> arrived = monitor.take();
  const auto fallen_back = std::count(arrived.begin(), arrived.end(), "EVAL");
  if (fallen_back == 0) return "no EVAL, though the server had forgotten all scripts";
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    if (arrived[i] == "EVAL" && (i == 0 || arrived[i - 1] != "EVALSHA")) {
      return "EVAL without EVALSHA before it: " + fmt::format("{}", fmt::join(arrived, " "));
    }
  }
  return bench.is_held() ? "still held" : "";
}

bool uses_scripts(const Descriptor& descriptor) {
  const auto is_script = [](std::string_view command) { return command.starts_with("EVALSHA"); };
  return std::any_of(descriptor.acquire_commands.begin(), descriptor.acquire_commands.end(),
                     is_script) ||
         std::any_of(descriptor.release_commands.begin(), descriptor.release_commands.end(),
                     is_script);
}

/// Any text that a strategy hands out.
bool tells_secrets(std::string_view text) {
  return text.find(kPlainPassword) != std::string_view::npos ||
         text.find(kPlainPasswordInUrl) != std::string_view::npos;
}

std::string acquire_and_release(Bench& bench, int database) {
  const auto client = bench.client();
  const AcquireResult held = client->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  if (!RedisProbe(shared_redis().port(), database).exists(bench.key())) {
    return fmt::format("the lock is not in database {}", database);
  }
  if (!bench.is_held()) return "another client gets it too";
  const ReleaseOutcome released = client->release(*held.lease);
  if (released != ReleaseOutcome::released)
    return fmt::format("release gave {}", name_of(released));
  for (const TracedCommand& command : client->trace().take()) {
    if (tells_secrets(command.endpoint + " " + command.name + " " + command.key)) {
      return "the password was told to the Env, with " + command.name;
    }
  }
  return {};
}

std::string works_for_a_plain_user(const Descriptor& descriptor) {
  constexpr int kDatabase = 3;
  RedisProbe(shared_redis().port()).ask({"FLUSHALL"});
  Bench bench(descriptor, fmt::format("redis://{}:{}@127.0.0.1:{}/{}", kPlainUser,
                                      kPlainPasswordInUrl, shared_redis().port(), kDatabase));
  return acquire_and_release(bench, kDatabase);
}

std::string works_over_a_unix_socket(const Descriptor& descriptor) {
  constexpr int kDatabase = 5;
  RedisProbe(shared_redis().port()).ask({"FLUSHALL"});
  Bench bench(descriptor, fmt::format("unix://{}:{}@{}?db={}", kPlainUser, kPlainPasswordInUrl,
                                      shared_redis().unix_socket().string(), kDatabase));
  return acquire_and_release(bench, kDatabase);
}

/// The right password of somebody else is as secret as a wrong one.
std::string wrong_password_stays_secret(const Descriptor& descriptor) {
  Bench bench(descriptor, fmt::format("redis://nobody:{}@127.0.0.1:{}", kPlainPasswordInUrl,
                                      shared_redis().port()));
  const auto client = bench.unconnected_client();
  const auto connected = client->connect();
  if (connected) return "connected with a wrong password";
  const std::string endpoint = fmt::format("127.0.0.1:{}", shared_redis().port());
  if (connected.error().message.find(endpoint) == std::string::npos) {
    return fmt::format("\"{}\" does not name {}", connected.error().message, endpoint);
  }
  const AcquireResult result = client->try_once(bench.key());
  if (result.outcome != AcquireOutcome::failed) return unexpected(result, AcquireOutcome::failed);
  const bool told = tells_secrets(connected.error().message) || tells_secrets(result.reason);
  return told ? "the message tells the password" : "";
}

}  // namespace

std::vector<Property> redis_properties() {
  std::vector<Property> own{{"SurvivesAScriptFlush", uses_scripts, survives_a_script_flush},
                            {"WorksForAPlainUser", uses_redis, works_for_a_plain_user},
                            {"WorksOverAUnixSocket", uses_redis, works_over_a_unix_socket},
                            {"WrongPasswordStaysSecret", uses_redis, wrong_password_stays_secret}};
  for (const auto& group : {renewal_properties(), notification_properties()}) {
    own.insert(own.end(), group.begin(), group.end());
  }
  return own;
}

}  // namespace lockbench::test
