#include "strategies/store.h"

#include <fmt/format.h>

#include <map>

#include "strategies/postgres/client/names.h"
#include "strategies/postgres/client/session.h"

namespace lockbench::postgres {
namespace {

/// {"a","b"}: what an array parameter looks like.
std::string array_of(std::span<const std::string> texts) {
  std::string array = "{";
  for (const std::string& text : texts) {
    if (array.size() > 1) array += ',';
    array += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') array += '\\';
      array += c;
    }
    array += '"';
  }
  return array + "}";
}

class PostgresStore : public Store {
 public:
  PostgresStore(Endpoint endpoint, Duration command_timeout)
      : env_(make_system_env(0)), session_(std::move(endpoint), command_timeout, *env_) {}

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
                      .instance = started->value,
                      .cpu_seconds = std::nullopt};
  }

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys) override {
    session_.close();
    std::map<std::string, std::vector<std::string>> by_schema;
    for (const std::string& key : keys) by_schema[schema_of_key(key)].push_back(key);
    std::size_t removed = 0;
    for (const auto& [schema, own] : by_schema) {
      const auto there = ask("SELECT 1 FROM pg_namespace WHERE nspname = $1", {schema});
      if (!there) return tl::unexpected(there.error());
      if (there->rows == 0) continue;
      for (const char* table : {"lock_row", "lease"}) {
        const auto deleted = ask(
            fmt::format("DELETE FROM {}.{} WHERE key = ANY ($1)", schema, table), {array_of(own)});
        if (!deleted) return tl::unexpected(deleted.error());
        removed += deleted->rows;
      }
    }
    return removed;
  }

  StoreResult<void> remove_run(std::string_view run_id) override {
    session_.close();
    const auto dropped =
        ask(fmt::format("DROP SCHEMA IF EXISTS {} CASCADE", schema_of_run(run_id)));
    if (!dropped) return tl::unexpected(dropped.error());
    return {};
  }

 private:
  StoreResult<Answer> ask(const std::string& sql, const std::vector<std::string>& parameters = {}) {
    auto answer = session_.call({.name = "housekeeping", .sql = sql, .how = Statement::How::once},
                                {}, parameters);
    if (answer && !answer->done()) {
      return tl::unexpected(StoreError{StoreError::Kind::rejected,
                                       display() + ": the statement was not carried out"});
    }
    return answer;
  }

  std::unique_ptr<Env> env_;
  Session session_;
};

const StoreRegistration registration({
    .name = "postgres",
    .value_name = "DSN",
    .help = "use this PostgreSQL database instead of a private one: "
            "postgresql://[user[:password]@]host[:port]/database or \"host=... dbname=...\"",
    .display = [](const std::string& url) -> StoreKind::Text {
      return parse_endpoint(url).map([](const Endpoint& endpoint) { return endpoint.display; });
    },
    .make = [](const std::string& url, Duration command_timeout) -> std::unique_ptr<Store> {
      return std::make_unique<PostgresStore>(parse_endpoint(url).value(), command_timeout);
    },
});

}  // namespace
}  // namespace lockbench::postgres
