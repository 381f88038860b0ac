#include "strategies/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "strategies/number.h"
#include "strategies/redis/client/cluster.h"
#include "strategies/redis/client/protocol.h"
#include "strategies/redis/client/rights.h"

namespace lockbench::redis {
namespace {

// Keys per SCAN. Holds up a shared server for about a tenth of a millisecond.
constexpr std::string_view kScanned = "1000";

/// A sorted set: prefixes of keys in use, by the time of their end in seconds. So a later run finds
/// the keys of a killed one without a scan if there are none.
constexpr std::string_view kRuns = "lockbench:runs";
/// The most of them to look at after a run: the oldest hundred.
constexpr std::string_view kLastOfOldest = "99";
/// How long a run looks for the keys of killed ones.
constexpr Duration kTidying = std::chrono::seconds(1);
/// Where the next run goes on with that: a member of the set, whose score is the time when the scan
/// began, negative so that it comes first. The runs that were old then are forgotten at its end.
constexpr std::string_view kCursor = "cursor:";

/// "lockbench:<run id>:{": whatever another program writes into the set, nothing else is removed.
bool is_of_a_run(std::string_view prefix) {
  const std::string_view run = run_of_key(prefix);
  return is_run_id(run) && prefix.substr(prefix.find(run) + run.size()).starts_with(":{");
}

std::int64_t seconds_of(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

constexpr Form<std::vector<std::string>> kTexts{
    "a list of texts", [](const Reply& reply) -> std::optional<std::vector<std::string>> {
      if (reply.type != Reply::Type::array) return std::nullopt;
      std::vector<std::string> texts;
      for (const Reply& element : reply.elements) texts.push_back(element.text);
      return texts;
    }};

/// The answer to SCAN.
const Form<Reply> page_form{"a cursor and keys", [](const Reply& reply) {
                              const auto& parts = reply.elements;
                              const bool fits = reply.type == Reply::Type::array &&
                                                parts.size() == 2 &&
                                                parts[0].type == Reply::Type::string &&
                                                parts[1].type == Reply::Type::array;
                              return fits ? std::optional(reply) : std::nullopt;
                            }};

const Form<Reply> list_form{"a list", [](const Reply& reply) {
                              return reply.type == Reply::Type::array ? std::optional(reply)
                                                                      : std::nullopt;
                            }};

/// The commands of locks that came after Redis 2.0.
struct Since {
  std::string_view command, version;
};
constexpr Since kSince[] = {{"eval", "Redis 2.6"},    {"evalsha", "Redis 2.6"},
                            {"pexpire", "Redis 2.6"}, {"pexpireat", "Redis 2.6"},
                            {"pttl", "Redis 2.6"},    {"time", "Redis 2.6"},
                            {"wait", "Redis 3.0"}};

/// INFO for the facts, UNLINK and SCAN for tidying up. Each call begins with a new connection: the
/// server may have closed an idle one during a run, or been replaced.
class RedisStore : public Store {
 public:
  RedisStore(const Endpoint& endpoint, Duration command_timeout)
      : endpoint_(endpoint),
        command_timeout_(command_timeout),
        display_(endpoint.display()),
        env_(make_system_env(0)),
        redis_(make_connection_factory()->make(endpoint, command_timeout, *env_)) {}

  std::string display() const override { return display_; }

  StoreResult<void> reach(const std::stop_token& stop) override {
    redis_->close();
    if (auto connected = redis_->connect(stop); !connected) return connected;
    const auto reply = redis_->call({"PING"}, stop);
    if (reply) {
      if (reply->is_text("PONG")) return {};
      return failure_at(display_, StoreError::Kind::rejected,
                        "not a Redis server: unexpected answer to PING");
    }
    // A user without the permission to PING may still be allowed to lock.
    if (reply.error().code == StoreError::Code::no_permission) return {};
    return tl::unexpected(reply.error());
  }

  StoreResult<StoreFacts> facts() override {
    redis_->close();
    const auto server = redis_->call(kText, {"INFO", "server"});
    if (!server) return tl::unexpected(server.error());
    const auto cpu = redis_->call(kText, {"INFO", "cpu"});
    if (!cpu) return tl::unexpected(cpu.error());
    const auto replication = redis_->call(kText, {"INFO", "replication"}).value_or("");
    const auto stats = redis_->call(kText, {"INFO", "stats"}).value_or("");
    const auto seconds = [&](std::string_view name) {
      return std::strtod(info_field(*cpu, name).c_str(), nullptr);
    };
    StoreFacts facts{.version = printable(info_field(*server, "redis_version"))};
    // The rest is of one server, and a cluster has several.
    if (on_cluster()) return facts;
    return StoreFacts{
        .version = std::move(facts.version),
        .instance = info_field(*server, "run_id"),
        .cpu_seconds = seconds("used_cpu_user") + seconds("used_cpu_sys"),
        .commands = parse_number<double>(info_field(stats, "total_commands_processed")),
        .replicas = parse_number<int>(info_field(replication, "connected_slaves")).value_or(0)};
  }

  StoreResult<std::map<std::string, std::string>> settings() override {
    redis_->close();
    std::map<std::string, std::string> found;
    constexpr std::pair<const char*, const char*> kFields[] = {{"memory", "maxmemory"},
                                                               {"memory", "maxmemory_policy"},
                                                               {"persistence", "aof_enabled"},
                                                               {"replication", "connected_slaves"}};
    for (const auto& [section, field] : kFields) {
      const auto info = redis_->call(kText, {"INFO", section});
      if (!info) return tl::unexpected(info.error());
      if (auto value = info_field(*info, field); !value.empty()) {
        found[field] = printable(value);
      }
    }
    return found;
  }

  StoreResult<std::map<std::string, std::string>> missing(
      std::span<const std::string> commands) override {
    redis_->close();
    std::vector<std::string_view> words{"COMMAND", "INFO"};
    words.insert(words.end(), commands.begin(), commands.end());
    const auto known = redis_->read(list_form, "COMMAND INFO", redis_->call(words));
    if (!known) return tl::unexpected(known.error());
    // Unknown commands have nil, or an empty list, in their places.
    const auto& entries = known->elements;
    std::map<std::string, std::string> missing;
    for (std::size_t i = 0; i < commands.size(); ++i) {
      if (i < entries.size() && !entries[i].elements.empty()) continue;
      const auto* const since = std::ranges::find(kSince, commands[i], &Since::command);
      missing[commands[i]] = since == std::end(kSince) ? "" : since->version;
    }
    return missing;
  }

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys,
                                       const std::stop_token& stop) override {
    redis_->close();
    return unlink(keys, stop);
  }

  StoreResult<void> begin_keys(std::string_view prefix, WallTime until,
                               const std::stop_token& stop) override {
    redis_->close();
    const std::string end = std::to_string(seconds_of(until));
    return redis_->call(kCount, {"ZADD", kRuns, end, prefix}, stop).map([](auto) {});
  }

  StoreResult<void> end_keys(std::string_view prefix, const std::stop_token& stop) override {
    redis_->close();
    return forget(prefix, stop);
  }

  StoreResult<void> remove_old_runs(const std::stop_token& stop) override {
    // A scan that is continued later would have to be continued on each server.
    if (on_cluster()) return {};
    redis_->close();
    const auto oldest =
        redis_->call(kTexts, {"ZRANGE", kRuns, "0", kLastOfOldest, "WITHSCORES"}, stop);
    if (!oldest) return tl::unexpected(oldest.error());
    std::int64_t begun = seconds_of(env_->wall_now());
    std::string cursor = "0";
    std::vector<std::string> old, done;
    for (std::size_t i = 0; i + 1 < oldest->size(); i += 2) {
      const std::string& member = (*oldest)[i];
      const auto score = parse_number<std::int64_t>((*oldest)[i + 1]);
      if (!score || *score > begun - std::chrono::seconds(kKeptFor).count()) continue;
      const bool of_a_run = is_of_a_run(member);
      (of_a_run ? old : done).push_back(member);
      if (of_a_run || !member.starts_with(kCursor)) continue;
      const std::string noted = member.substr(kCursor.size());
      if (!parse_number<std::uint64_t>(noted)) continue;
      cursor = noted;
      begun = std::min(begun, -*score);
    }
    if (!old.empty()) {
      const auto is_meant = [&](std::string_view key) {
        return std::ranges::any_of(old,
                                   [&](const std::string& one) { return key.starts_with(one); });
      };
      const auto removed =
          remove_matching("lockbench:*", stop, is_meant, cursor, env_->now() + kTidying);
      if (!removed && stop.stop_requested()) return {};
      if (!removed) {
        StoreError error = removed.error();
        const std::string_view run = run_of_key(old.front());
        error.message = fmt::format(
            "keys of run {}, which was killed, are left ({}); to remove them: lockbench clean "
            "--run {} --redis URL",
            run, error.message, run);
        return tl::unexpected(std::move(error));
      }
      if (cursor == "0") done.insert(done.end(), old.begin(), old.end());
    }
    for (const std::string& member : done) {
      if (auto gone = forget(member, stop); !gone) return gone;
    }
    if (cursor == "0" || old.empty()) return {};
    const std::string score = std::to_string(-begun), next = std::string(kCursor) + cursor;
    return redis_->call(kCount, {"ZADD", kRuns, score, next}, stop).map([](auto) {});
  }

  StoreResult<std::size_t> remove_run(std::string_view run_id,
                                      const std::stop_token& stop) override {
    redis_->close();
    auto removed = scan_of_run(run_id, stop);
    if (!removed) return removed;
    const auto noted = redis_->call(kTexts, {"ZRANGE", kRuns, "0", "-1"}, stop);
    if (!noted) return tl::unexpected(noted.error());
    for (const std::string& prefix : *noted) {
      if (!is_of_run(run_of_key(prefix), run_id)) continue;
      if (const auto gone = forget(prefix, stop); !gone) return tl::unexpected(gone.error());
    }
    return removed;
  }

 private:
  bool on_cluster() const { return !endpoint_.cluster.empty(); }

  StoreResult<std::size_t> scan_of_run(std::string_view run_id, const std::stop_token& stop) {
    std::size_t removed = 0;
    if (on_cluster()) {
      const auto primaries = primaries_of(endpoint_, command_timeout_, *env_);
      if (!primaries) return tl::unexpected(primaries.error());
      for (const Endpoint& primary : *primaries) {
        auto gone = RedisStore(primary, command_timeout_).scan_of_run(run_id, stop);
        if (!gone) return gone;
        removed += *gone;
      }
      return removed;
    }
    std::string cursor = "0";
    return remove_matching(
        fmt::format("lockbench:{}[-:]*", run_id), stop,
        [&](std::string_view key) { return is_of_run(run_of_key(key), run_id); }, cursor,
        TimePoint::max());
  }

  StoreResult<void> forget(std::string_view prefix, const std::stop_token& stop) {
    return redis_->call(kCount, {"ZREM", kRuns, prefix}, stop).map([](auto) {});
  }

  /// Removes the keys that match the pattern and that `is_meant` accepts; returns how many. Goes on
  /// from `cursor`, which is "0" at the end; sooner after `until`.
  template <class IsMeant>
  StoreResult<std::size_t> remove_matching(const std::string& pattern, const std::stop_token& stop,
                                           const IsMeant& is_meant, std::string& cursor,
                                           TimePoint until) {
    // Enough for a billion keys, against a broken server: normally a scan ends by itself.
    constexpr int kMostPages = 1'000'000;
    std::size_t removed = 0;
    for (int page = 0; page < kMostPages; ++page) {
      if (stop.stop_requested()) return removal_stopped(display_);
      const auto found =
          redis_->call(page_form, {"SCAN", cursor, "MATCH", pattern, "COUNT", kScanned}, stop);
      if (!found) return tl::unexpected(found.error());
      std::vector<std::string> keys;
      for (const Reply& key : found->elements[1].elements) {
        if (is_meant(key.text)) keys.push_back(key.text);
      }
      auto gone = unlink(keys, stop);
      if (!gone) return gone;
      removed += *gone;
      cursor = found->elements[0].text;
      if (cursor == "0" || env_->now() >= until) return removed;
    }
    return failure_at(display_, StoreError::Kind::rejected, "SCAN does not end");
  }

  StoreResult<std::size_t> unlink(std::span<const std::string> keys, const std::stop_token& stop) {
    // Large enough for few round trips, small enough not to hold up a shared server.
    constexpr std::size_t kBatch = 500;
    if (on_cluster() || endpoint_.sharded) return unlink_each(keys, kBatch, stop);
    return remove_in_batches(keys, kBatch, display_, stop, [&](auto batch) {
      std::vector<std::string_view> command{"UNLINK"};
      command.insert(command.end(), batch.begin(), batch.end());
      return redis_->read(kCount, command.front(), redis_->call(command, stop));
    });
  }

  /// One command for each key, as one command may have keys of one slot only.
  StoreResult<std::size_t> unlink_each(std::span<const std::string> keys, std::size_t most,
                                       const std::stop_token& stop) {
    return remove_in_batches(keys, most, display_, stop, [&](auto batch) {
      for (const std::string& key : batch) redis_->queue({"UNLINK", key});
      StoreResult<std::int64_t> removed = 0;
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const auto gone = redis_->read(kCount, "UNLINK", redis_->receive(stop));
        if (!gone) {
          removed = tl::unexpected(gone.error());
        } else if (removed) {
          *removed += *gone;
        }
      }
      return removed;
    });
  }

  const Endpoint endpoint_;
  const Duration command_timeout_;
  const std::string display_;
  std::unique_ptr<Env> env_;
  std::unique_ptr<Connection> redis_;
};

Secrecy secrecy(const std::string& text) {
  const Endpoint endpoint = parse_endpoint(text).value();
  const bool cluster = !endpoint.cluster.empty();
  Url url{.password = endpoint.password,
          .hosts = cluster ? endpoint.cluster : endpoint.sentinels,
          .tls = endpoint.tls};
  if (url.hosts.empty() && endpoint.path.empty()) url.hosts.push_back({.host = endpoint.host});
  return secrecy_by_scheme(url, cluster                      ? "rediss+cluster://"
                                : endpoint.sentinels.empty() ? "rediss://"
                                                             : "rediss+sentinel://");
}

const StoreRegistration redis_store({
    .name = "redis",
    .value_name = "URL",
    .help =
        "use this Redis instead of a private one: redis://[[user]:password@]host[:port][/db], "
        "unix://[[user]:password@]/path, "
        "redis+sentinel://[[user]:password@]host[:port],.../name[/db] for the master that these "
        "sentinels watch, or redis+cluster://[[user]:password@]host[:port],... for a Redis "
        "Cluster; rediss://, rediss+sentinel:// and rediss+cluster:// for TLS, with "
        "?cacert=FILE&cert=FILE&key=FILE&server-name=NAME&min-tls=1.3 as needed; repeatable: the "
        "nodes of Redlock, other strategies use the first",
    .repeatable = true,
    .listing = Listing::by_scan,
    .display =
        [](const std::string& url) {
          return parse_endpoint(url).map(
              [](const Endpoint& endpoint) { return endpoint.display_with_database(); });
        },
    .secrecy = secrecy,
    .is_sharded =
        [](const std::string& url) {
          const auto endpoint = parse_endpoint(url);
          return endpoint && !endpoint->cluster.empty();
        },
    .commands_of = commands_of,
    .make = make_store<parse_endpoint, RedisStore>,
});

}  // namespace
}  // namespace lockbench::redis
