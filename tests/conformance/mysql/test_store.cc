#include <fmt/format.h>
#include <mysql.h>

#include "strategies/carrier.h"
#include "strategies/mysql/client/endpoint.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/mysql/mysql_test_store.h"

namespace lockbench::test {

void MysqlProbe::Close::operator()(st_mysql* connection) const { mysql_close(connection); }

MysqlProbe::MysqlProbe(const testbed::Server& server)
    : MysqlProbe(server.port(), std::string(testbed::kUser), server.secret()) {
  ask("SET time_zone = '+00:00'");
  // Tells it from the clients under test.
  ask("USE mysql");
}

MysqlProbe::MysqlProbe(std::uint16_t port, const std::string& user, const std::string& password)
    : connection_(mysql_init(nullptr)) {
  if (mysql_real_connect(connection_.get(), "127.0.0.1", user.c_str(), password.c_str(), nullptr,
                         port, nullptr, 0) == nullptr) {
    throw std::runtime_error(mysql_error(connection_.get()));
  }
}

std::vector<std::string> MysqlProbe::ask(const std::string& sql) {
  if (mysql_real_query(connection_.get(), sql.data(), sql.size()) != 0) {
    throw std::runtime_error(sql + ": " + mysql_error(connection_.get()));
  }
  const std::unique_ptr<MYSQL_RES, void (*)(MYSQL_RES*)> result(
      mysql_store_result(connection_.get()), mysql_free_result);
  std::vector<std::string> cells;
  if (!result) return cells;
  const unsigned columns = mysql_num_fields(result.get());
  while (char* const* const row = mysql_fetch_row(result.get())) {
    const unsigned long* const lengths = mysql_fetch_lengths(result.get());
    for (unsigned column = 0; column < columns; ++column) {
      cells.emplace_back(row[column] == nullptr ? "" : row[column],
                         row[column] == nullptr ? 0 : lengths[column]);
    }
  }
  return cells;
}

namespace {

constexpr const char* kKey = "lockbench:conformance:{lock}";
constexpr const char* kOfClients =
    "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'lockbench' AND "
    "COALESCE(DB, '') <> 'mysql'";
/// That have locked rows.
constexpr const char* kOfTransactions =
    "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE trx_rows_locked > 0 AND "
    "trx_state = 'RUNNING'";

std::string holder_of(const std::string& key) {
  return fmt::format("SELECT IS_USED_LOCK('{}')", mysql::lock_name(key));
}

/// Ends these sessions. One that has gone before is no error.
void end_sessions(MysqlProbe& look, const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    if (id.empty()) continue;
    try {
      look.ask("KILL " + id);
    } catch (const std::runtime_error&) {
      continue;
    }
    const std::string is_there =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = " + id;
    if (!comes_true([&] { return look.value(is_there) == "0"; })) {
      throw std::runtime_error("the server does not end session " + id);
    }
  }
}

bool has_database(MysqlProbe& look) {
  return !look.ask(fmt::format("SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{}' "
                               "AND TABLE_NAME = 'fencing'",
                               kSchema))
              .empty();
}

}  // namespace

MysqlTestStore::MysqlTestStore() : SqlTestStore(testbed::start_mariadb(shared_testbed())) {}

void MysqlTestStore::clear() {
  MysqlProbe look = probe();
  end_sessions(look, look.ask(kOfClients));
  look.ask(fmt::format("DROP DATABASE IF EXISTS {}", kSchema));
}

std::vector<std::string> MysqlTestStore::keys() {
  MysqlProbe look = probe();
  std::vector<std::string> keys;
  // A name does not show its key, so try the key that checks use.
  if (!look.value(holder_of(kKey)).empty()) keys.emplace_back(kKey);
  if (!has_database(look)) return keys;
  for (const std::string& row : look.ask(
           fmt::format("SELECT name FROM {0}.lock_row WHERE name NOT IN (SELECT name FROM (SELECT "
                       "name FROM {0}.lock_row FOR UPDATE SKIP LOCKED) AS free)",
                       kSchema))) {
    keys.push_back(row);
  }
  for (const std::string& row : look.ask(fmt::format(
           "SELECT name FROM {}.lease WHERE owner <> '' AND lock_until > SYSDATE(6)", kSchema))) {
    keys.push_back(row);
  }
  return keys;
}

std::optional<TimePoint> MysqlTestStore::end_of(const std::string& key) {
  MysqlProbe look = probe();
  const auto left =
      look.ask(fmt::format("SELECT TIMESTAMPDIFF(MICROSECOND, SYSDATE(6), lock_until) FROM "
                           "{}.lease WHERE name = '{}' AND owner <> ''",
                           kSchema, key));
  if (left.empty()) return std::nullopt;
  return Carrier::current().now() + std::chrono::microseconds(std::stoll(left.front()));
}

void MysqlTestStore::take_away(const std::vector<std::string>& keys) {
  MysqlProbe look = probe();
  for (const std::string& key : keys) {
    look.ask(fmt::format("DELETE FROM {}.lease WHERE name = '{}'", kSchema, key));
    end_sessions(look, look.ask(holder_of(key)));
  }
  // The server shows what it showed before to whom looks again within 100 ms.
  look.ask("SELECT SLEEP(0.12)");
  end_sessions(look, look.ask(kOfTransactions));
}

int MysqlTestStore::other_connections() { return static_cast<int>(probe().ask(kOfClients).size()); }

int MysqlTestStore::waiting() {
  return std::stoi(probe().value(
      "SELECT (SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock') + "
      "(SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = "
      "'INNODB_ROW_LOCK_CURRENT_WAITS')"));
}

MysqlTestStore& shared_mysql() { return dynamic_cast<MysqlTestStore&>(shared_store()); }

namespace {

const TestedStoreRegistration registration({.name = "mysql",
                                            .backends = {"mysql"},
                                            .shared = the_one<MysqlTestStore>,
                                            .make = another<MysqlTestStore>});

}  // namespace

}  // namespace lockbench::test
