#include "tests/conformance/common/bench.h"
#include "tests/conformance/redis/own_properties.h"

namespace lockbench::test {
namespace {

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

std::vector<Property> endpoint_properties() {
  return {{"WorksForAPlainUser", uses_redis, works_for_a_plain_user},
          {"WorksOverAUnixSocket", uses_redis, works_over_a_unix_socket},
          {"WrongPasswordStaysSecret", uses_redis, wrong_password_stays_secret}};
}

}  // namespace lockbench::test
