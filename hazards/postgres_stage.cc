#include <fmt/format.h>

#include <thread>

#include "hazards/client_process.h"
#include "hazards/stage.h"
#include "strategies/postgres/client/names.h"
#include "strategies/postgres/client/session.h"
#include "testbed/servers/postgres_server.h"

namespace lockbench::hazards {
namespace {

using postgres::Answer;

/// One PostgreSQL, or one with a replica.
class PostgresStage : public Stage {
 public:
  explicit PostgresStage(Ground ground) : ground_(ground) {}

  tl::expected<void, std::string> open(House& house) {
    testbed::PostgresOptions options{.max_clients = 200};
    if (ground_ == Ground::clocked) {
      auto clock = testbed::ClockShim::make(house.testbed(), house.options().clock_shim);
      if (!clock) return tl::unexpected(clock.error());
      clock_ = *std::move(clock);
      options.clock = clock_.get();
    }
    auto server = testbed::start_postgres(house.testbed(), options);
    if (!server) return tl::unexpected(server.error());
    server_ = *std::move(server);
    if (ground_ != Ground::replicated) return {};
    replication_ = house.line_to(server_->port());
    options.primary_port = replication_->port();
    auto replica = testbed::start_postgres(house.testbed(), options);
    if (!replica) return tl::unexpected(replica.error());
    replica_ = *std::move(replica);
    return {};
  }

  Endpoints endpoints(std::uint16_t port) const override {
    return {{"postgres", {dsn(port != 0 ? port : this->port())}}};
  }
  std::uint16_t port() const override { return failed_over_ ? replica_->port() : server_->port(); }

  void restart() override {
    need(server_->kill_hard());
    need(server_->restart(ground_ != Ground::volatile_));
  }
  void jump_clock(Duration ahead) override { clock_->set(ahead); }

  void cut_replication() override { replication_->hold(); }
  void fail_over() override {
    need(server_->kill_hard());
    failed_over_ = true;
    if (ask("SELECT pg_promote()").value != "t") throw StageFailure("the replica stays a replica");
  }

  /// An administrator's hand. A lock on a row names its transaction in the row.
  void end_session(const std::string& key) override {
    const std::string sql = fmt::format(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE granted AND "
        "((locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = {}) OR "
        "(locktype = 'transactionid' AND transactionid IN "
        "(SELECT xmax FROM {}.lock_row WHERE key = $1)))",
        postgres::advisory_number(key), postgres::schema_of_key(key));
    if (ask(sql, {key}).value != "t") throw StageFailure("nobody's session holds the lock");
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
      case Limit::silent_client:
        // The first question after a second, then one a second.
        set("tcp_keepalives_idle", "1");
        set("tcp_keepalives_interval", "1");
        return set("tcp_keepalives_count", std::to_string(std::max<long>(time.count() - 1, 1)));
      case Limit::deaf_client:
        return set("tcp_user_timeout", std::to_string(std::chrono::milliseconds(time).count()));
    }
  }

  void begin_transaction() override {
    transaction_ = open_session();
    ask(*transaction_, "BEGIN");
    ask(*transaction_, "SELECT txid_current()");
  }
  /// Whichever of the two the lock is: the other is free.
  tl::expected<void, std::string> wait_in_transaction(const std::string& key) override {
    const std::string advisory =
        fmt::format("SELECT pg_advisory_xact_lock({})", postgres::advisory_number(key));
    const std::string row = fmt::format("SELECT FROM {}.lock_row WHERE key = $1 FOR UPDATE",
                                        postgres::schema_of_key(key));
    auto answer = transaction_->call(statement(advisory), {}, {});
    if (answer && answer->done()) answer = transaction_->call(statement(row), {}, {&key, 1});
    if (answer && answer->done()) return {};
    if (answer && answer->kind == Answer::Kind::lock_not_available) {
      return tl::unexpected<std::string>("canceling statement due to lock timeout");
    }
    if (answer) throw StageFailure("the server ended the session of the transaction that waited");
    if (answer.error().kind != StoreError::Kind::rejected) {
      throw StageFailure("the transaction that waited: " + answer.error().message);
    }
    return tl::unexpected(answer.error().message);
  }
  bool commit_transaction() override {
    const auto answer = transaction_->call(statement("COMMIT"), {}, {});
    return answer && answer->done() && answer->tag == "COMMIT";
  }

 private:
  static std::string dsn(std::uint16_t port) {
    return fmt::format("postgresql://postgres@127.0.0.1:{}/postgres", port);
  }
  static postgres::Statement statement(const std::string& sql) {
    return {.name = "stage", .sql = sql, .how = postgres::Statement::How::once};
  }

  std::unique_ptr<postgres::Session> open_session() {
    return std::make_unique<postgres::Session>(*postgres::parse_endpoint(dsn(port())),
                                               std::chrono::seconds(10), *env_);
  }
  static Answer ask(postgres::Session& session, const std::string& sql,
                    const std::vector<std::string>& parameters = {}) {
    return need(session.call(statement(sql), {}, parameters));
  }
  Answer ask(const std::string& sql, const std::vector<std::string>& parameters = {}) {
    return ask(*open_session(), sql, parameters);
  }

  /// Returns when new sessions have it.
  void set(const std::string& name, const std::string& value) {
    const auto session = open_session();
    ask(*session, fmt::format("ALTER SYSTEM SET {} = '{}'", name, value));
    ask(*session, "SELECT pg_reload_conf()");
    const std::string look = fmt::format(
        "SELECT setting = reset_val AND source = 'configuration file' "
        "FROM pg_settings WHERE name = '{}'",
        name);
    const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (ask(look).value != "t") {
      if (std::chrono::steady_clock::now() > give_up_at) {
        throw StageFailure("the server does not take up " + name);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  const Ground ground_;
  std::unique_ptr<testbed::ClockShim> clock_;
  std::unique_ptr<testbed::PostgresServer> server_, replica_;
  std::unique_ptr<testbed::Proxy> replication_;
  bool failed_over_ = false;
  const std::unique_ptr<Env> env_ = make_system_env(0);
  std::unique_ptr<postgres::Session> transaction_;
};

tl::expected<std::shared_ptr<Stage>, NoStage> make_stage(House& house, Ground ground) {
  if (ground == Ground::cramped) {
    return tl::unexpected(NoStage{"PostgreSQL evicts nothing", true});
  }
  auto stage = std::make_shared<PostgresStage>(ground);
  if (auto opened = stage->open(house); !opened) return tl::unexpected(NoStage{opened.error()});
  return stage;
}

const StageRegistration registration("postgres", make_stage);

}  // namespace
}  // namespace lockbench::hazards
