#include <fmt/format.h>

#include "strategies/conditional_lease.h"
#include "strategies/mysql/lock.h"
#include "strategies/registry.h"

namespace lockbench::mysql {
namespace {

// SYSDATE() is the time at which it is called; NOW() is the start of the statement, which may lie
// before a wait for the row.

/// Rows with an owner and the end of the lease. The version is the owner: no two grants have one.
class Rows : public VersionedStore {
 public:
  Rows(const Endpoint& endpoint, const Timeouts& timeouts, Env& env)
      : session_(endpoint, timeouts, env) {}

  StoreResult<void> connect() override { return session_.connect(); }
  const std::string& display() const override { return session_.display(); }

  StoreResult<std::optional<VersionedItem>> get(const std::string& key,
                                                const std::stop_token& stop) override {
    const auto answer =
        call("SELECT", "SELECT owner FROM lease WHERE name = ? AND lock_until > SYSDATE(6)", key,
             {key}, stop);
    if (!answer) return tl::unexpected(answer.error());
    if (!answer->done()) return session_.stayed_locked();
    if (answer->rows == 0) return std::nullopt;
    if (answer->rows > 1) return session_.not_understood("one row at most", *answer);
    return VersionedItem{answer->value, answer->value};
  }

  StoreResult<bool> put(const ConditionalPut& put, const std::stop_token& stop) override {
    const std::string key(put.key), owner(put.value);
    const std::string until =
        fmt::format("SYSDATE(6) + INTERVAL {} MICROSECOND", 1000 * ceil_milliseconds(put.ttl));
    const bool first = put.over == nullptr;
    // The two assignments are made in this order. An unchanged row does not count.
    const auto answer =
        first ? call("INSERT",
                     fmt::format("INSERT INTO lease (name, owner, lock_until) VALUES (?, ?, {}) "
                                 "ON DUPLICATE KEY UPDATE "
                                 "owner = IF(lock_until <= SYSDATE(6), VALUES(owner), owner), "
                                 "lock_until = IF(owner = VALUES(owner), VALUES(lock_until), "
                                 "lock_until)",
                                 until),
                     key, {key, owner}, stop)
              : call("UPDATE",
                     fmt::format(
                         "UPDATE lease SET owner = ?, lock_until = {} WHERE name = ? AND owner = ?",
                         until),
                     key, {owner, key, put.over->version}, stop);
    if (!answer) return tl::unexpected(answer.error());
    if (!answer->done()) {
      if (first) return false;
      return session_.stayed_locked();
    }
    // 2: an existing row was changed.
    if (answer->rows > 2) return session_.not_understood("one row at most", *answer);
    return answer->rows > 0;
  }

 private:
  StoreResult<Answer> call(std::string_view name, const std::string& sql, std::string_view key,
                           const std::vector<std::string>& parameters,
                           const std::stop_token& stop) {
    if (auto fits = check_row_key(session_, key); !fits) return tl::unexpected(fits.error());
    return sql::call_alone(session_, {.name = name, .sql = sql, .answered = name},
                           schema_of_key(key), key, parameters, stop);
  }

  Session session_;
};

const Registration mysql_lease(with_known_hazards({
    .name = "mysql-lease",
    .backend = "mysql",
    .summary = "A row per key with owner and lock_until, by the database's clock",
    .acquire_commands = {"INSERT key, owner, lock_until ON DUPLICATE KEY UPDATE IF(lock_until <= "
                         "SYSDATE())"},
    .release_commands = {"SELECT owner WHERE key", "UPDATE owner, lock_until WHERE key AND owner"},
    .source = "lease tables as in ShedLock (lock_until), here with an owner for each grant",
    .libraries =
        {{"Java",
          "ShedLock JdbcTemplateLockProvider on MariaDB (with usingDbTime; its owner is the host)",
          "lockAtMostFor = {ttl}; renewed: KeepAliveLockProvider"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .renewable = true},
    .make = make_lease_on<ConditionalLease, Rows, parse_endpoint>,
}));

}  // namespace
}  // namespace lockbench::mysql
