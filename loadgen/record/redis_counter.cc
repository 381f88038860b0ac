#include "loadgen/record/redis_counter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "loadgen/record/scripts.h"

namespace lockbench::loadgen {
namespace {

// Commands per pipeline when all keys are read or removed.
constexpr int kBatch = 256;

using Key = int;
using OnReply = std::function<tl::expected<void, std::string>(Key, const redis::Reply&)>;

/// A missing key counts as 0.
tl::expected<Reading, std::string> to_reading(const redis::Reply& reply,
                                              const redis::Endpoint& endpoint) {
  if (reply.is_nil()) return Reading{};
  Reading reading;
  const char* const end = reply.text.data() + reply.text.size();
  const auto [stopped, error] = std::from_chars(reply.text.data(), end, reading.value);
  if (reply.type != redis::Reply::Type::string || error != std::errc() || stopped != end) {
    return tl::unexpected(fmt::format("{}: the counter's key holds no number", endpoint.display()));
  }
  return reading;
}

class RedisSession : public CounterSession {
 public:
  RedisSession(const RedisCounterOptions& options, std::vector<KeyWrites>& keys, Env& env)
      : options_(options),
        keys_(keys),
        connection_(options.connections.make(options.endpoint, options.command_timeout, env)) {}

  tl::expected<void, std::string> connect() override {
    if (const auto connected = connection_->connect(); !connected) {
      return tl::unexpected(connected.error().message);
    }
    return {};
  }

  tl::expected<Reading, std::string> read(int key, std::optional<std::uint64_t> fencing) override {
    if (!options_.checks_fencing || !fencing) {
      const auto reply = connection_->call({"GET", options_.key_name(key)});
      if (!reply) return tl::unexpected(reply.error().message);
      return to_reading(*reply, options_.endpoint);
    }
    const std::string name = options_.key_name(key);
    const auto reply = connection_->call(
        scripts::counter_read_fenced, {name, options_.fence_name(key)}, {std::to_string(*fencing)});
    if (!reply) return tl::unexpected(reply.error().message);
    if (!reply->is_nil()) return to_reading(*reply, options_.endpoint);
    keys_[static_cast<std::size_t>(key)].note(WriteResult::rejected_stale);
    return Reading{.stale = true};
  }

  WriteResult write(int key, const Reading& reading,
                    std::optional<std::uint64_t> fencing) override {
    const std::string value = std::to_string(reading.value + 1);
    const std::string name = options_.key_name(key);
    KeyWrites& writes = keys_[static_cast<std::size_t>(key)];
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
  static WriteResult to_result(const StoreResult<redis::Reply>& reply) {
    if (reply) return reply->is_text("OK") ? WriteResult::accepted : WriteResult::unknown;
    return reply.error().kind == StoreError::Kind::unanswered ? WriteResult::unknown
                                                              : WriteResult::failed;
  }

  const RedisCounterOptions& options_;
  std::vector<KeyWrites>& keys_;
  std::unique_ptr<redis::Connection> connection_;
};

class RedisCounter : public Counter {
 public:
  explicit RedisCounter(RedisCounterOptions options)
      : options_(std::move(options)),
        keys_(static_cast<std::size_t>(options_.keys)),
        connection_(
            options_.connections.make(options_.endpoint, options_.command_timeout, options_.env)) {}

  tl::expected<void, std::string> connect() {
    if (const auto connected = connection_->connect(); !connected) {
      return tl::unexpected(connected.error().message);
    }
    auto instance = server_instance();
    if (!instance) return tl::unexpected(instance.error());
    instance_ = std::move(*instance);
    return for_each_value([](KeyWrites& writes, std::uint64_t value) { writes.value = value; });
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
    const auto read = for_each_value([&totals](const KeyWrites& writes, std::uint64_t value) {
      const std::uint64_t initial = writes.value;
      writes.add_to(totals, std::max(value, initial) - initial);
    });
    if (!read) return tl::unexpected(read.error());
    return totals;
  }

  tl::expected<void, std::string> remove_keys() override {
    const auto removed = [](Key, const redis::Reply&) -> tl::expected<void, std::string> {
      return {};
    };
    if (auto done = for_each_key("DEL", options_.key_name, removed); !done) return done;
    if (!options_.checks_fencing) return {};
    return for_each_key(
        "DEL", [this](Key key) { return options_.fence_name(key); }, removed);
  }

 private:
  /// Changes with a restart. Empty without permission to run INFO.
  tl::expected<std::string, std::string> server_instance() {
    const auto info = connection_->call({"INFO", "server"});
    const bool refused = !info && info.error().kind == StoreError::Kind::rejected;
    if (!info && !refused) return tl::unexpected(info.error().message);
    const std::size_t begin = refused ? std::string::npos : info->text.find("run_id:");
    if (begin == std::string::npos) return std::string();
    return info->text.substr(begin, info->text.find('\r', begin) - begin);
  }

  template <class OnValue>
  tl::expected<void, std::string> for_each_value(OnValue&& on_value) {
    return for_each_key("GET", options_.key_name,
                        [&](Key key, const redis::Reply& reply) -> tl::expected<void, std::string> {
                          const auto reading = to_reading(reply, options_.endpoint);
                          if (!reading) return tl::unexpected(reading.error());
                          on_value(keys_[static_cast<std::size_t>(key)], reading->value);
                          return {};
                        });
  }

  /// Sends one command for each key, in batches; stops after the batch in which something failed.
  tl::expected<void, std::string> for_each_key(std::string_view command,
                                               const std::function<std::string(int)>& name_of,
                                               const OnReply& on_reply) {
    for (Key first = 0; first < options_.keys; first += kBatch) {
      const Key end = std::min(options_.keys, first + kBatch);
      for (Key key = first; key < end; ++key) connection_->queue({command, name_of(key)});
      tl::expected<void, std::string> outcome;
      // Every answer must be received, also after a failure.
      for (Key key = first; key < end; ++key) {
        const auto reply = connection_->receive();
        const auto handled = reply ? on_reply(key, *reply) : tl::unexpected(reply.error().message);
        if (!handled && outcome) outcome = handled;
      }
      if (!outcome) return outcome;
    }
    return {};
  }

  const RedisCounterOptions options_;
  std::vector<KeyWrites> keys_;
  std::unique_ptr<redis::Connection> connection_;
  std::string instance_;
};

}  // namespace

tl::expected<std::unique_ptr<Counter>, std::string> make_redis_counter(
    RedisCounterOptions options) {
  auto counter = std::make_unique<RedisCounter>(std::move(options));
  if (const auto connected = counter->connect(); !connected) {
    return tl::unexpected(connected.error());
  }
  return std::unique_ptr<Counter>(std::move(counter));
}

}  // namespace lockbench::loadgen
