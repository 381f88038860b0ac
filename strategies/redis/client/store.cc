#include "strategies/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "strategies/redis/client/protocol.h"

namespace lockbench::redis {
namespace {

/// INFO for the facts, UNLINK for tidying up.
class RedisStore : public Store {
 public:
  RedisStore(const Endpoint& endpoint, Duration command_timeout)
      : display_(endpoint.display()),
        env_(make_system_env(0)),
        redis_(make_hiredis_factory()->make(endpoint, command_timeout, *env_)) {}

  std::string display() const override { return display_; }

  StoreResult<void> reach(const std::stop_token& stop) override {
    renew_connection();
    if (auto connected = redis_->connect(stop); !connected) return connected;
    const auto reply = redis_->call({"PING"}, stop);
    if (reply) {
      if (reply->is_text("PONG")) return {};
      return tl::unexpected(StoreError{StoreError::Kind::rejected,
                                       display_ + ": not a Redis: it answers PING otherwise"});
    }
    // A user without the permission to PING may still be allowed to lock.
    if (is_no_permission(reply.error())) return {};
    return tl::unexpected(reply.error());
  }

  StoreResult<StoreFacts> facts() override {
    renew_connection();
    const auto server = redis_->call({"INFO", "server"});
    if (!server) return tl::unexpected(server.error());
    const auto cpu = redis_->call({"INFO", "cpu"});
    if (!cpu) return tl::unexpected(cpu.error());
    const auto replicas = connected_replicas(*redis_);
    const auto seconds = [&](std::string_view name) {
      return std::strtod(info_field(cpu->text, name).c_str(), nullptr);
    };
    return StoreFacts{.version = info_field(server->text, "redis_version"),
                      .instance = info_field(server->text, "run_id"),
                      .cpu_seconds = seconds("used_cpu_user") + seconds("used_cpu_sys"),
                      .replicas = replicas.value_or(0)};
  }

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys) override {
    // Enough for few round trips, and little enough not to hold up a shared server.
    constexpr std::size_t kBatch = 500;
    std::size_t removed = 0;
    renew_connection();
    while (!keys.empty()) {
      const auto batch = keys.first(std::min(kBatch, keys.size()));
      keys = keys.subspan(batch.size());
      std::vector<std::string_view> command{"UNLINK"};
      command.insert(command.end(), batch.begin(), batch.end());
      const auto reply = redis_->call(command);
      if (!reply) return tl::unexpected(reply.error());
      removed += static_cast<std::size_t>(reply->integer);
    }
    return removed;
  }

 private:
  /// The server may have closed a connection that was idle during a run, or may have been replaced.
  void renew_connection() { redis_->close(); }

  const std::string display_;
  std::unique_ptr<Env> env_;
  std::unique_ptr<Connection> redis_;
};

std::string display(const Endpoint& endpoint) {
  if (endpoint.database == 0) return endpoint.display();
  return fmt::format("{}{}{}", endpoint.display(),
                     endpoint.path.empty() ? "/" : "?db=", endpoint.database);
}

const StoreRegistration registration({
    .name = "redis",
    .value_name = "URL",
    .help =
        "use this Redis instead of a private one: redis://[[user]:password@]host[:port][/db], "
        "unix://[[user]:password@]/path, or "
        "redis+sentinel://[[user]:password@]host[:port],.../name[/db] for the master that these "
        "sentinels watch; repeatable: the nodes of Redlock, other strategies use the first",
    .repeatable = true,
    .display = [](const std::string& url) { return parse_endpoint(url).map(display); },
    .make = [](const std::string& url, Duration command_timeout) -> std::unique_ptr<Store> {
      return std::make_unique<RedisStore>(parse_endpoint(url).value(), command_timeout);
    },
});

}  // namespace
}  // namespace lockbench::redis
