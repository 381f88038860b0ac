#include <fmt/format.h>

#include <algorithm>

#include "deployment/private_store.h"
#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/client/session.h"
#include "testbed/servers/kinds.h"

namespace lockbench::deployment {
namespace {

using postgres::Answer;

/// Enough for hazards, which have few clients.
constexpr std::uint32_t kFewClients = 200;

/// One PostgreSQL, a primary with a replica, or one behind a pooler.
class PostgresStore : public PrivateStore {
 public:
  PostgresStore(testbed::Testbed& host, const StoreRequest& request)
      : PrivateStore("postgres", request.setup != Setup::volatile_) {
    testbed::PostgresOptions options{.max_clients = request.setup == Setup::load ? request.clients
                                                                                 : kFewClients};
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
    transaction_ = open_session();
    ask(*transaction_, "BEGIN");
    ask(*transaction_, "SELECT txid_current()");
  }
  /// Takes both kinds of locks: the other kind is free.
  tl::expected<void, std::string> wait_in_transaction(const std::string& key) override {
    const std::string advisory =
        fmt::format("SELECT pg_advisory_xact_lock({})", postgres::advisory_number(key));
    const std::string row =
        fmt::format("SELECT FROM {}.lock_row WHERE key = $1 FOR UPDATE", schema_of_key(key));
    auto answer = transaction_->call(statement(advisory), {}, {});
    if (answer && answer->done()) answer = transaction_->call(statement(row), {}, {&key, 1});
    if (answer && answer->done()) return {};
    if (answer && answer->kind == Answer::Kind::lock_not_available) {
      return tl::unexpected<std::string>("canceling statement due to lock timeout");
    }
    if (answer) throw Failure("the server ended the session of the waiting transaction");
    if (answer.error().kind != StoreError::Kind::rejected) {
      throw Failure("the waiting transaction: " + answer.error().message);
    }
    return tl::unexpected(answer.error().message);
  }
  /// The server reads no end of the connection while it works, by default.
  void abandon_statement(const std::string& mark, std::chrono::seconds time) override {
    const auto session = open_session();
    need(session->connect());
    std::stop_source stop;
    stop.request_stop();
    const auto answer =
        session->call(statement(fmt::format("SELECT pg_sleep({}) /* {} */", time.count(), mark)),
                      {}, {}, {.wait_until = {}, .stop = stop.get_token()});
    if (answer || answer.error().kind != StoreError::Kind::unanswered) {
      throw Failure("the statement was not left behind");
    }
    if (!testbed::comes_true(std::chrono::seconds(1), [&] { return runs_statement(mark); })) {
      throw Failure("the server ended the statement with its connection");
    }
  }
  bool runs_statement(const std::string& mark) override {
    return ask("SELECT count(*) > 0 FROM pg_stat_activity WHERE state = 'active' AND "
               "pid <> pg_backend_pid() AND strpos(query, $1) > 0",
               {mark})
               .value == "t";
  }

  bool commit_transaction() override {
    const auto answer = transaction_->call(statement("COMMIT"), {}, {});
    return answer && answer->done() && answer->tag == "COMMIT";
  }

 private:
  static postgres::Statement statement(const std::string& sql) {
    return {.name = "deployment", .sql = sql, .how = postgres::Statement::How::once};
  }

  std::unique_ptr<postgres::Session> open_session() {
    return std::make_unique<postgres::Session>(*postgres::parse_endpoint(urls().front()),
                                               std::chrono::seconds(10), *env_);
  }
  static Answer ask(postgres::Session& session, const std::string& sql,
                    const std::vector<std::string>& parameters = {}) {
    return need(session.call(statement(sql), {}, parameters));
  }
  Answer ask(const std::string& sql, const std::vector<std::string>& parameters = {}) {
    return ask(*open_session(), sql, parameters);
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
  const std::unique_ptr<Env> env_ = make_system_env(0);
  std::unique_ptr<postgres::Session> transaction_;
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
