#include "loadgen/record/redis_counter.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "loadgen/record/scripts.h"
#include "strategies/number.h"
#include "strategies/redis/client/protocol.h"

namespace lockbench::loadgen {
namespace {

// Keys per round trip when all are read or removed.
constexpr std::size_t kBatch = 256;

/// A missing key counts as 0.
tl::expected<Reading, std::string> to_reading(const redis::Reply& reply,
                                              const redis::Endpoint& endpoint) {
  if (reply.is_nil()) return Reading{};
  const auto value = parse_number<std::uint64_t>(reply.text);
  if (reply.type != redis::Reply::Type::string || !value) {
    return tl::unexpected(fmt::format("{}: the counter's key holds no number", endpoint.display()));
  }
  return Reading{.value = *value};
}

class RedisSession : public CounterSession {
 public:
  RedisSession(const RedisCounterOptions& options, PerKey<KeyWrites>& keys, Env& env)
      : options_(options),
        keys_(keys),
        connection_(options.connections.make(options.endpoint, options.command_timeout, env)) {}

  tl::expected<void, std::string> connect() override {
    return connection_->connect().map_error([](const StoreError& error) { return error.message; });
  }

  tl::expected<Reading, std::string> read(int key, std::optional<std::uint64_t> fencing) override {
    if (!options_.checks_fencing || !fencing) {
      const auto reply = connection_->call({"GET", options_.key_name(key)});
      if (!reply) return tl::unexpected(reply.error().message);
      return to_reading(*reply, options_.endpoint);
    }
    KeyWrites& writes = touch(key);
    const std::string name = options_.key_name(key);
    const auto reply = connection_->call(
        scripts::counter_read_fenced, {name, options_.fence_name(key)}, {std::to_string(*fencing)});
    if (!reply) return tl::unexpected(reply.error().message);
    if (!reply->is_nil()) return to_reading(*reply, options_.endpoint);
    writes.note(WriteResult::rejected_stale);
    return Reading{.stale = true};
  }

  WriteResult write(int key, const Reading& reading,
                    std::optional<std::uint64_t> fencing) override {
    const std::string value = std::to_string(reading.value + 1);
    const std::string name = options_.key_name(key);
    KeyWrites& writes = touch(key);
    // The first writer read its value before any other client wrote.
    std::uint64_t unknown = 0;
    writes.value.compare_exchange_strong(unknown, reading.value + 1, std::memory_order_relaxed);
    // Rarely contended: only if the lock fails do several clients write to one key.
    raise_to(writes.highest, reading.value + 1);
    if (!options_.checks_fencing || !fencing) {
      return writes.note(to_result(connection_->call({"SET", name, value})));
    }
    const auto reply =
        connection_->call(scripts::counter_write_fenced, {name, options_.fence_name(key)},
                          {std::to_string(*fencing), value});
    if (reply && reply->is_integer(0)) return writes.note(WriteResult::rejected_stale);
    if (reply && reply->is_integer(1)) return writes.note(WriteResult::accepted);
    return writes.note(to_result(reply));
  }

 private:
  /// Notes that from now on the server may have this key.
  KeyWrites& touch(int key) {
    KeyWrites& writes = keys_[key];
    // Written only once, as clients share it.
    if (!writes.stored.load(std::memory_order_relaxed)) {
      writes.stored.store(true, std::memory_order_relaxed);
    }
    return writes;
  }
  static WriteResult to_result(const StoreResult<redis::Reply>& reply) {
    if (reply) return reply->is_text("OK") ? WriteResult::accepted : WriteResult::unknown;
    return reply.error().kind == StoreError::Kind::unanswered ? WriteResult::unknown
                                                              : WriteResult::failed;
  }

  const RedisCounterOptions& options_;
  PerKey<KeyWrites>& keys_;
  std::unique_ptr<redis::Connection> connection_;
};

class RedisCounter : public Counter {
 public:
  explicit RedisCounter(RedisCounterOptions options)
      : Counter(options.keys),
        options_(std::move(options)),
        connection_(
            options_.connections.make(options_.endpoint, options_.command_timeout, options_.env)) {}

  tl::expected<void, std::string> connect() {
    if (const auto connected = connection_->connect(); !connected) {
      return tl::unexpected(connected.error().message);
    }
    auto instance = server_instance();
    if (!instance) return tl::unexpected(instance.error());
    instance_ = std::move(*instance);
    // Checks now that counters can be read at all.
    const auto reply = connection_->call({"GET", options_.key_name(0)});
    if (!reply) return tl::unexpected(reply.error().message);
    return {};
  }

  std::unique_ptr<CounterSession> open(Env& env) override {
    return std::make_unique<RedisSession>(options_, keys_, env);
  }

  tl::expected<CounterTotals, std::string> totals() override {
    CounterTotals totals;
    // The server may have closed a connection that was idle during the run.
    connection_->close();
    const auto instance = server_instance();
    if (!instance) return tl::unexpected(instance.error());
    if (*instance != instance_) {
      return tl::unexpected(
          fmt::format("{} restarted: updates that it lost cannot be distinguished from updates "
                      "that the lock lost",
                      options_.endpoint.display()));
    }
    std::vector<std::pair<int, const KeyWrites*>> written;
    keys_.for_each([&](int key, const KeyWrites& writes) {
      // With no write under way, the other keys can have had only refused reads.
      if (writes.value.load(std::memory_order_relaxed) == 0) return writes.add_to(totals, 0);
      written.emplace_back(key, &writes);
    });
    for (std::size_t first = 0; first < written.size(); first += kBatch) {
      const std::size_t end = std::min(written.size(), first + kBatch);
      for (std::size_t i = first; i < end; ++i) {
        connection_->queue({"GET", options_.key_name(written[i].first)});
      }
      std::optional<std::string> failure;
      // Every answer must be received, even after a failure.
      for (std::size_t i = first; i < end; ++i) {
        const KeyWrites& writes = *written[i].second;
        const auto reply = connection_->receive();
        const auto reading =
            reply ? to_reading(*reply, options_.endpoint) : tl::unexpected(reply.error().message);
        if (reading) {
          const std::uint64_t initial = writes.value.load(std::memory_order_relaxed) - 1;
          writes.add_to(totals, std::max(reading->value, initial) - initial);
        } else if (!failure) {
          failure = reading.error();
        }
      }
      if (failure) return tl::unexpected(*failure);
    }
    return totals;
  }

  tl::expected<void, std::string> remove_keys(const std::stop_token& stop) override {
    // The server may have closed the connection, or have been frozen.
    connection_->close();
    std::vector<int> stored;
    keys_.for_each([&](int key, const KeyWrites& writes) {
      if (writes.stored.load(std::memory_order_relaxed)) stored.push_back(key);
    });
    for (std::size_t first = 0; first < stored.size(); first += kBatch) {
      if (stop.stop_requested()) {
        return tl::unexpected(options_.endpoint.display() + ": stopped before the end");
      }
      std::vector<std::string> names;
      for (std::size_t i = first; i < std::min(stored.size(), first + kBatch); ++i) {
        names.push_back(options_.key_name(stored[i]));
        if (options_.checks_fencing) names.push_back(options_.fence_name(stored[i]));
      }
      std::vector<std::string_view> command{"UNLINK"};
      command.insert(command.end(), names.begin(), names.end());
      const auto reply = connection_->call(command, stop);
      if (!reply) return tl::unexpected(reply.error().message);
    }
    return {};
  }

 private:
  /// Changes with a restart. Empty without the permission for INFO.
  tl::expected<std::string, std::string> server_instance() {
    const auto info = connection_->call({"INFO", "server"});
    const bool refused = !info && info.error().kind == StoreError::Kind::rejected;
    if (!info && !refused) return tl::unexpected(info.error().message);
    return refused ? std::string() : redis::info_field(info->text, "run_id");
  }

  const RedisCounterOptions options_;
  std::unique_ptr<redis::Connection> connection_;
  std::string instance_;
};

}  // namespace

tl::expected<std::unique_ptr<Counter>, std::string> make_redis_counter(
    RedisCounterOptions options) {
  auto counter = std::make_unique<RedisCounter>(std::move(options));
  return counter->connect().map([&]() -> std::unique_ptr<Counter> { return std::move(counter); });
}

}  // namespace lockbench::loadgen
