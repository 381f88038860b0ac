#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "deployment/sql_store.h"
#include "strategies/mysql/client/session.h"
#include "strategies/store.h"
#include "testbed/process/parallel.h"
#include "testbed/servers/kinds.h"

namespace lockbench::deployment {
namespace {

class MysqlStore : public SqlStore {
 public:
  MysqlStore(testbed::Testbed& host, const StoreRequest& request)
      : SqlStore("mysql", request.setup != Setup::volatile_) {
    testbed::MysqlOptions options{.max_clients = room_for(request)};
    options.tls = host.tls();
    options.clock = clock_for(host, request.setup);
    add(testbed::start_mariadb(host, options));
  }

  /// As an administrator would.
  void end_session(const std::string& key) override {
    std::string holder = ask("SELECT IS_USED_LOCK(?)", {mysql::lock_name(key)}).value;
    if (holder.empty()) holder = holder_of_row(key);
    if (holder.empty()) throw Failure("no session holds the lock");
    ask("KILL " + holder);
    const std::string look =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = " + holder;
    if (testbed::comes_true(std::chrono::seconds(10), [&] { return ask(look).value == "0"; })) {
      return;
    }
    throw Failure("the server does not end the session");
  }

  void limit(Limit what, std::chrono::seconds time) override {
    const long seconds = time.count();
    switch (what) {
      case Limit::statement:
        return set("max_statement_time", seconds);
      case Limit::lock_wait:
        return set("innodb_lock_wait_timeout", seconds);
      case Limit::idle_transaction:
        return set("idle_transaction_timeout", seconds);
      case Limit::idle_session:
        return set("wait_timeout", seconds);
      case Limit::silent_client:
        // The first probe after a second, then one per second.
        set("tcp_keepalive_time", 1);
        set("tcp_keepalive_interval", 1);
        return set("tcp_keepalive_probes", std::max<long>(seconds - 1, 1));
      case Limit::unacknowledged:
        throw Failure("MariaDB has no such setting");
    }
  }

  bool runs_statement(const std::string& mark) override {
    return ask("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND "
               "ID <> CONNECTION_ID() AND INSTR(INFO, ?) > 0",
               {mark})
               .value != "0";
  }

 private:
  std::unique_ptr<sql::Session> make_session(Env& env) const override {
    return std::make_unique<mysql::Session>(*mysql::parse_endpoint(urls().front()),
                                            std::chrono::seconds(10), env);
  }
  StoreResult<Answer> take_both(sql::Session& session, const std::string& key) const override {
    constexpr int kSeconds = 10;
    auto named =
        call(session, fmt::format("SELECT GET_LOCK(?, {})", kSeconds), {mysql::lock_name(key)});
    if (!named || !named->done()) return named;
    if (named->value != "1") return Answer{.kind = Answer::Kind::lock_not_available};
    return call(
        session,
        fmt::format("SELECT 1 FROM {}.lock_row WHERE name = ? FOR UPDATE", schema_of_key(key)),
        {key});
  }
  std::string sleeping(std::chrono::seconds time) const override {
    return fmt::format("SELECT SLEEP({})", time.count());
  }
  /// The server shows a row's lock only while somebody waits for it. Empty: nobody holds it.
  std::string holder_of_row(const std::string& key) {
    const auto waiter = open_session(), looking = open_session();
    const std::string id = ask(*waiter, "SELECT CONNECTION_ID()").value;
    // A waiter may wait for another one, which waits for the holder.
    const std::string look = fmt::format(
        "WITH RECURSIVE ahead AS (SELECT blocking_trx_id AS id FROM "
        "information_schema.INNODB_LOCK_WAITS JOIN information_schema.INNODB_TRX ON trx_id = "
        "requesting_trx_id WHERE trx_mysql_thread_id = {} UNION SELECT blocking_trx_id FROM "
        "information_schema.INNODB_LOCK_WAITS JOIN ahead ON requesting_trx_id = ahead.id) SELECT "
        "trx_mysql_thread_id FROM ahead JOIN information_schema.INNODB_TRX ON trx_id = ahead.id "
        "WHERE trx_state = 'RUNNING' LIMIT 1",
        id);
    constexpr std::chrono::seconds kWait{2};
    std::string holder;
    testbed::in_parallel(2, [&](std::size_t part) {
      if (part == 0) {
        (void)call(*waiter,
                   fmt::format("SELECT 1 FROM {}.lock_row WHERE name = ? FOR UPDATE WAIT {}",
                               schema_of_key(key), kWait.count()),
                   {key});
        return;
      }
      // The server shows older facts for as long as somebody looks more often than each 100 ms.
      constexpr std::chrono::milliseconds kBetween{150};
      for (auto left = kWait / kBetween; holder.empty() && left > 0; --left) {
        std::this_thread::sleep_for(kBetween);
        holder = ask(*looking, look).value;
      }
      ask(*looking, "KILL QUERY " + id);
    });
    return holder;
  }
  /// Sessions that begin from now on have the setting.
  void set(const std::string& name, long value) {
    ask(fmt::format("SET GLOBAL {} = {}", name, value));
  }
};

const PrivateStoreRegistration private_mysql({
    .name = "mysql",
    .program = testbed::kMariadb.name,
    .find_program = testbed::find_mariadb,
    .version =
        [](const std::filesystem::path& program) {
          const std::string all = version_of_program(program);
          return all.substr(0, all.find('-'));
        },
    .start = [](testbed::Testbed& host,
                const StoreRequest& request) -> std::unique_ptr<PrivateStore> {
      if (request.setup == Setup::cramped) throw NotOffered("MariaDB evicts nothing");
      if (request.setup == Setup::replicated) {
        throw NotOffered("MariaDB's replicas are not started here", NotStarted::Why::unplayable);
      }
      return std::make_unique<MysqlStore>(host, request);
    },
});

}  // namespace
}  // namespace lockbench::deployment
