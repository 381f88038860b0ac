#include "strategies/store.h"

#include <fmt/format.h>

#include <map>

#include "strategies/mysql/client/session.h"

namespace lockbench::mysql {
namespace {

class MysqlStore : public Store {
 public:
  MysqlStore(Endpoint endpoint, Duration command_timeout)
      : env_(make_system_env(0)), session_(std::move(endpoint), command_timeout, *env_) {}

  std::string display() const override { return session_.display(); }

  StoreResult<void> reach(const std::stop_token& stop) override {
    session_.close();
    return session_.connect(stop);
  }

  StoreResult<StoreFacts> facts() override {
    // A connection that idled through a run may be to a server that is gone.
    session_.close();
    // The end of a time-based UUID: drawn at the server's start.
    const auto started = ask("SELECT SUBSTR(UUID(), 20, 4)");
    if (!started) return tl::unexpected(started.error());
    // "10.11.19-MariaDB-0+deb12u1"
    const std::string version = session_.version();
    return StoreFacts{.version = version.substr(0, version.find('-')), .instance = started->value};
  }

  StoreResult<std::map<std::string, std::string>> settings() override {
    session_.close();
    std::map<std::string, std::string> found;
    for (const char* name :
         {"max_connections", "wait_timeout", "max_statement_time", "idle_transaction_timeout"}) {
      const auto value = ask(fmt::format("SELECT @@GLOBAL.{}", name));
      if (!value) return tl::unexpected(value.error());
      found[name] = value->value;
    }
    const auto used =
        ask("SELECT VARIABLE_VALUE - 1 FROM information_schema.GLOBAL_STATUS "
            "WHERE VARIABLE_NAME = 'THREADS_CONNECTED'");
    if (used) found["connections"] = used->value;
    return found;
  }

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys,
                                       const std::stop_token& stop) override {
    session_.close();
    std::map<std::string, std::vector<std::string>> by_schema;
    for (const std::string& key : keys) by_schema[schema_of_key(key)].push_back(key);
    std::size_t removed = 0;
    for (const auto& [schema, own] : by_schema) {
      const auto there =
          ask("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", {schema}, stop);
      if (!there) return tl::unexpected(there.error());
      if (there->rows == 0) continue;
      constexpr std::size_t kBatch = 200;
      auto gone = remove_in_batches(own, kBatch, display(), stop, [&, &where = schema](auto batch) {
        return remove_rows(where, batch, stop);
      });
      if (!gone) return gone;
      removed += *gone;
    }
    return removed;
  }

  StoreResult<std::size_t> remove_run(std::string_view run_id,
                                      const std::stop_token& stop) override {
    session_.close();
    const std::string schema = schema_of_run(run_id);
    auto removed =
        drop_schemas("SCHEMA_NAME REGEXP CONCAT('^', ?, '(_[0-9]+){0,1}$')", schema, stop);
    if (!removed) return removed;
    // Databases of killed runs do not expire. The sessions of a run use its database, so that a run
    // under way is spared. Those of other users are shown with the right PROCESS only, and this
    // table is refused without it. If this fails, the next run tries again.
    if (!ask("SELECT COUNT(*) FROM information_schema.INNODB_TRX", {}, stop)) return removed;
    (void)drop_schemas(
        fmt::format("SCHEMA_NAME REGEXP '^lockbench_[0-9]{{8}}t[0-9]{{6}}z_[0-9a-f]{{6}}(_[0-9]+)"
                    "{{0,1}}$' AND SUBSTR(SCHEMA_NAME, 11, 15) < DATE_FORMAT(UTC_TIMESTAMP() - "
                    "INTERVAL {} HOUR, '%Y%m%dt%H%i%s') AND SCHEMA_NAME NOT IN (SELECT DB FROM "
                    "information_schema.PROCESSLIST WHERE DB IS NOT NULL)",
                    kKeptFor.count()),
        {}, stop);
    return removed;
  }

 private:
  /// A row that a client has locked stays.
  StoreResult<std::size_t> remove_rows(const std::string& schema, std::span<const std::string> keys,
                                       const std::stop_token& stop) {
    std::string marks;
    for (std::size_t i = 0; i < keys.size(); ++i) marks += i == 0 ? "?" : ", ?";
    std::size_t removed = 0;
    for (const char* table : {"lock_row", "lease"}) {
      const auto gone = call(
          fmt::format("SET STATEMENT innodb_lock_wait_timeout = 0 FOR DELETE FROM {}.{} WHERE name "
                      "IN ({})",
                      schema, table, marks),
          keys, stop);
      if (!gone) return tl::unexpected(gone.error());
      if (gone->done()) removed += gone->rows;
    }
    return removed;
  }

  /// Drops the databases that meet the condition on SCHEMA_NAME, with `parameter` for its mark;
  /// returns how many.
  StoreResult<std::size_t> drop_schemas(const std::string& condition, const std::string& parameter,
                                        const std::stop_token& stop) {
    constexpr std::size_t kMost = 1000;
    const std::string find = fmt::format(
        "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE {} LIMIT 1", condition);
    for (std::size_t dropped = 0;; ++dropped) {
      if (stop.stop_requested()) return removal_stopped(display());
      const auto name = ask(find, {parameter}, stop);
      if (!name) return tl::unexpected(name.error());
      if (name->value.empty() || dropped == kMost) return dropped;
      // An open transaction may keep its tables.
      const auto gone =
          ask(fmt::format("SET STATEMENT lock_wait_timeout = 1 FOR DROP DATABASE IF EXISTS {}",
                          name->value),
              {}, stop);
      if (!gone) return tl::unexpected(gone.error());
    }
  }

  StoreResult<Answer> call(const std::string& sql, std::span<const std::string> parameters,
                           const std::stop_token& stop) {
    return session_.call({.name = "housekeeping", .sql = sql}, {}, parameters,
                         {.wait_until = {}, .stop = stop});
  }
  StoreResult<Answer> ask(const std::string& sql, const std::vector<std::string>& parameters = {},
                          const std::stop_token& stop = {}) {
    auto answer = call(sql, parameters, stop);
    if (answer && !answer->done()) {
      return failure_at(display(), StoreError::Kind::rejected, "the statement was not carried out");
    }
    return answer;
  }

  std::unique_ptr<Env> env_;
  Session session_;
};

const StoreRegistration mysql_store({
    .name = "mysql",
    .value_name = "URL",
    .help = "use this MariaDB instead of a private one: mysql://[user[:password]@]HOST[:PORT], or "
            "mysqls:// for TLS, with "
            "?cacert=FILE&cert=FILE&key=FILE&server-name=NAME&min-tls=1.3 as needed",
    .display = display_of<parse_endpoint>,
    .secrecy =
        [](const std::string& url) {
          return secrecy_by_scheme(parse_endpoint(url).value(), "mysqls://");
        },
    .make = make_store<parse_endpoint, MysqlStore>,
});

}  // namespace
}  // namespace lockbench::mysql
