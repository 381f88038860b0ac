#include <fmt/format.h>

#include <algorithm>

#include "deployment/sql_store.h"
#include "strategies/postgres/client/session.h"
#include "testbed/servers/kinds.h"

namespace lockbench::deployment {
namespace {

/// One PostgreSQL, a primary with a replica, or one behind a pooler.
class PostgresStore : public SqlStore {
 public:
  PostgresStore(testbed::Testbed& host, const StoreRequest& request)
      : SqlStore("postgres", request.setup != Setup::volatile_) {
    testbed::PostgresOptions options{.max_clients = room_for(request)};
    if (host.tls() != nullptr && request.setup == Setup::pooled) {
      throw NotOffered("the pooler speaks no TLS here", NotStarted::Why::unplayable);
    }
    options.tls = host.tls();
    options.clock = clock_for(host, request.setup);
    add(testbed::start_postgres(host, options));
    if (request.setup == Setup::pooled) {
      pooler_ = need(testbed::start_pgbouncer(host, ports().front()));
    }
    if (request.setup != Setup::replicated) return;
    replication_ = line_to(host, ports().front());
    options.primary_port = replication_->port();
    replica_ = need(testbed::start_postgres(host, options));
  }

  Servers servers() const override {
    if (failed_over_) return {replica_.get()};
    if (pooler_) return {pooler_.get()};
    return PrivateStore::servers();
  }

  void cut_replication() override { replication_->hold(); }
  void fail_over() override {
    need(servers().front()->kill_hard());
    failed_over_ = true;
    if (ask("SELECT pg_promote()").value != "t") throw Failure("the replica was not promoted");
  }

  /// As an administrator would. A row lock shows its transaction in the row.
  void end_session(const std::string& key) override {
    const std::string sql = fmt::format(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE granted AND "
        "((locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = {}) OR "
        "(locktype = 'transactionid' AND transactionid IN "
        "(SELECT xmax FROM {}.lock_row WHERE key = $1)))",
        postgres::advisory_number(key), schema_of_key(key));
    if (ask(sql, {key}).value != "t") throw Failure("no session holds the lock");
  }

  void limit(Limit what, std::chrono::seconds time) override {
    const std::string seconds = std::to_string(time.count());
    switch (what) {
      case Limit::statement:
        return set("statement_timeout", seconds + "s");
      case Limit::lock_wait:
        return set("lock_timeout", seconds + "s");
      case Limit::idle_transaction:
        return set("idle_in_transaction_session_timeout", seconds + "s");
      case Limit::idle_session:
        set("idle_in_transaction_session_timeout", seconds + "s");
        return set("idle_session_timeout", seconds + "s");
      case Limit::silent_client:
        // The first probe after a second, then one per second.
        set("tcp_keepalives_idle", "1");
        set("tcp_keepalives_interval", "1");
        return set("tcp_keepalives_count", std::to_string(std::max<long>(time.count() - 1, 1)));
      case Limit::unacknowledged:
        return set("tcp_user_timeout", std::to_string(std::chrono::milliseconds(time).count()));
    }
  }

  void begin_transaction() override {
    SqlStore::begin_transaction();
    ask(transaction(), "SELECT txid_current()");
  }
  bool runs_statement(const std::string& mark) override {
    return ask("SELECT count(*) > 0 FROM pg_stat_activity WHERE state = 'active' AND "
               "pid <> pg_backend_pid() AND strpos(query, $1) > 0",
               {mark})
               .value == "t";
  }

 private:
  std::unique_ptr<sql::Session> make_session(Env& env) const override {
    return std::make_unique<postgres::Session>(*postgres::parse_endpoint(urls().front()),
                                               std::chrono::seconds(10), env);
  }
  StoreResult<Answer> take_both(sql::Session& session, const std::string& key) const override {
    auto answer = call(
        session, fmt::format("SELECT pg_advisory_xact_lock({})", postgres::advisory_number(key)));
    if (!answer || !answer->done()) return answer;
    return call(
        session,
        fmt::format("SELECT FROM {}.lock_row WHERE key = $1 FOR UPDATE", schema_of_key(key)),
        {key});
  }
  std::string sleeping(std::chrono::seconds time) const override {
    return fmt::format("SELECT pg_sleep({})", time.count());
  }

  /// Returns when new sessions have the setting.
  void set(const std::string& name, const std::string& value) {
    const auto session = open_session();
    ask(*session, fmt::format("ALTER SYSTEM SET {} = '{}'", name, value));
    ask(*session, "SELECT pg_reload_conf()");
    const std::string look = fmt::format(
        "SELECT setting = reset_val AND source = 'configuration file' "
        "FROM pg_settings WHERE name = '{}'",
        name);
    if (testbed::comes_true(std::chrono::seconds(10), [&] { return ask(look).value == "t"; })) {
      return;
    }
    throw Failure("the server does not adopt " + name);
  }

  std::unique_ptr<testbed::Proxy> replication_;
  std::unique_ptr<testbed::Server> replica_, pooler_;
  bool failed_over_ = false;
};

const PrivateStoreRegistration private_postgres({
    .name = "postgres",
    .program = testbed::kPostgres.name,
    .find_program = testbed::find_postgres,
    .start = [](testbed::Testbed& host,
                const StoreRequest& request) -> std::unique_ptr<PrivateStore> {
      if (request.setup == Setup::cramped) throw NotOffered("PostgreSQL evicts nothing");
      return std::make_unique<PostgresStore>(host, request);
    },
});

}  // namespace
}  // namespace lockbench::deployment
