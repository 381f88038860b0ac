#include "strategies/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "strategies/postgres/client/session.h"

namespace lockbench::postgres {
namespace {

/// An array parameter: {"a","b"}.
std::string array_of(std::span<const std::string> texts) {
  std::vector<std::string> elements;
  for (const std::string& text : texts) elements.push_back(in_quotes(text, '"'));
  return fmt::format("{{{}}}", fmt::join(elements, ","));
}

class PostgresStore : public Store {
 public:
  PostgresStore(Endpoint endpoint, Duration command_timeout)
      : env_(make_system_env(0)),
        session_(endpoint, command_timeout, *env_),
        other_(std::move(endpoint), command_timeout, *env_) {}

  std::string display() const override { return session_.display(); }

  StoreResult<void> reach(const std::stop_token& stop) override {
    session_.close();
    return session_.connect(stop);
  }

  StoreResult<StoreFacts> facts() override {
    // A connection that idled through a run may be to a server that is gone.
    session_.close();
    const auto version = ask("SHOW server_version");
    if (!version) return tl::unexpected(version.error());
    const auto started = ask("SELECT pg_postmaster_start_time()");
    if (!started) return tl::unexpected(started.error());
    // "15.18 (Debian 15.18-0+deb12u1)"
    return StoreFacts{.version = version->value.substr(0, version->value.find(' ')),
                      .instance = started->value};
  }

  StoreResult<std::map<std::string, std::string>> settings() override {
    session_.close();
    std::map<std::string, std::string> found;
    for (const char* name :
         {"max_connections", "superuser_reserved_connections", "tcp_keepalives_idle",
          "tcp_keepalives_interval", "tcp_keepalives_count"}) {
      const auto value = ask("SELECT setting FROM pg_settings WHERE name = $1", {name});
      if (!value) return tl::unexpected(value.error());
      found[name] = value->value;
    }
    const auto used =
        ask("SELECT count(*)::text FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid()");
    if (used) found["connections"] = used->value;
    if (const auto pooled = is_pooled()) found["pooler"] = *pooled ? "transaction" : "no";
    return found;
  }

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys,
                                       const std::stop_token& stop) override {
    session_.close();
    std::map<std::string, std::vector<std::string>> by_schema;
    for (const std::string& key : keys) by_schema[schema_of_key(key)].push_back(key);
    std::size_t removed = 0;
    for (const auto& [schema, own] : by_schema) {
      if (stop.stop_requested()) return removal_stopped(display());
      const auto there = ask("SELECT 1 FROM pg_namespace WHERE nspname = $1", {schema});
      if (!there) return tl::unexpected(there.error());
      if (there->rows == 0) continue;
      for (const char* table : {"lock_row", "lease", "observed_lease", "counted"}) {
        const auto deleted = ask(
            fmt::format("DELETE FROM {}.{} WHERE key = ANY ($1)", schema, table), {array_of(own)});
        if (!deleted) return tl::unexpected(deleted.error());
        removed += deleted->rows;
      }
    }
    return removed;
  }

  StoreResult<std::size_t> remove_run(std::string_view run_id,
                                      const std::stop_token& stop) override {
    session_.close();
    auto removed =
        drop_schemas("name ~ ('^' || $1::text || '(_[0-9]+)?$')", schema_of_run(run_id), stop);
    if (!removed) return removed;
    // Schemas of killed runs do not expire. The sessions of a run are named after its schema, so
    // that a run under way is spared. If this fails, the next run tries again.
    (void)drop_schemas(
        "name ~ '^lockbench_[0-9]{8}t[0-9]{6}z_[0-9a-f]{6}(_[0-9]+)?$' AND "
        "substr(name, 11, 15) < to_char(now() AT TIME ZONE 'UTC' - $1::interval, "
        "'YYYYMMDD\"t\"HH24MISS') AND pg_has_role(nspowner, 'USAGE') AND name NOT IN "
        "(SELECT application_name FROM pg_stat_activity WHERE application_name IS NOT NULL)",
        fmt::format("{} hours", kKeptFor.count()), stop);
    return removed;
  }

 private:
  /// Whether a pooler serves two connections by the same process, or one by several; nothing if
  /// there is no second connection. See Session::check_pooler().
  std::optional<bool> is_pooled() {
    constexpr int kRounds = 3;
    const Statement process{
        .name = "pg_backend_pid", .sql = "SELECT pg_backend_pid()", .how = Statement::How::once};
    std::set<std::string> ours, theirs;
    for (int round = 0; round < kRounds; ++round) {
      const auto one = session_.call(process, {}, {}), two = other_.call(process, {}, {});
      if (!one || !two) return std::nullopt;
      ours.insert(one->value);
      theirs.insert(two->value);
    }
    other_.close();
    return ours.size() > 1 || theirs.size() > 1 || ours == theirs;
  }

  /// Drops the schemas whose `name` meets the condition, with `parameter` as its $1; returns how
  /// many.
  StoreResult<std::size_t> drop_schemas(std::string_view condition, const std::string& parameter,
                                        const std::stop_token& stop) {
    // Each drop locks all tables of the schema, and a server has room for a few thousand locks.
    constexpr std::size_t kAtOnce = 100;
    constexpr int kMostRounds = 100;
    const std::string find = fmt::format(
        "SELECT string_agg(name, ',') FROM (SELECT name FROM (SELECT nspname::text AS name, "
        "nspowner FROM pg_namespace) AS schemas WHERE {} LIMIT {}) AS ours",
        condition, kAtOnce);
    std::size_t dropped = 0;
    for (int round = 0; round < kMostRounds; ++round) {
      if (stop.stop_requested()) return removal_stopped(display());
      const auto names = ask(find, {parameter}, stop);
      if (!names) return tl::unexpected(names.error());
      if (names->value.empty()) break;
      const auto done =
          ask(fmt::format("DROP SCHEMA IF EXISTS {} CASCADE", names->value), {}, stop);
      if (!done) return tl::unexpected(done.error());
      dropped +=
          1 + static_cast<std::size_t>(std::count(names->value.begin(), names->value.end(), ','));
      if (dropped % kAtOnce != 0) break;
    }
    return dropped;
  }

  StoreResult<Answer> ask(const std::string& sql, const std::vector<std::string>& parameters = {},
                          const std::stop_token& stop = {}) {
    auto answer = session_.call({.name = "housekeeping", .sql = sql, .how = Statement::How::once},
                                {}, parameters, {.wait_until = {}, .stop = stop});
    if (answer && !answer->done()) {
      return failure_at(display(), StoreError::Kind::rejected, "the statement was not carried out");
    }
    return answer;
  }

  std::unique_ptr<Env> env_;
  Session session_, other_;
};

const StoreRegistration postgres_store({
    .name = "postgres",
    .value_name = "DSN",
    .help = "use this PostgreSQL database instead of a private one: "
            "postgresql://[user[:password]@]host[:port]/database or \"host=... dbname=...\"",
    .display = [](const std::string& url) -> StoreKind::Text {
      return parse_endpoint(url).map([](const Endpoint& endpoint) { return endpoint.display; });
    },
    .secrecy = secrecy_of,
    .make = make_store<parse_endpoint, PostgresStore>,
    .take_environment = take_environment,
    .complete = completed,
});

}  // namespace
}  // namespace lockbench::postgres
