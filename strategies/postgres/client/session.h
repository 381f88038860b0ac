#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/lease.h"
#include "strategies/postgres/client/endpoint.h"

struct pg_conn;
struct pg_result;

namespace lockbench::postgres {

struct Statement {
  enum class How {
    /// Prepared once per connection, which costs the first call another round trip. As `once`
    /// before use_schema(): a transaction pooler may be in between.
    prepared,
    once,    ///< with parameters, not prepared
    script,  ///< several statements without parameters, in one transaction
  };

  std::string_view name;  ///< as reported to the Env
  std::string sql;
  How how = How::prepared;
  bool waits = false;           ///< it waits for a lock, in the server's queue
  std::string_view answered{};  ///< how the tag of its answer begins; empty: any
};

struct Answer {
  enum class Kind {
    done,
    lock_not_available,  ///< after NOWAIT or lock_timeout
    deadlock,            ///< the server has ended the statement to break one
    not_serializable,    ///< without effect; may be repeated
    cancelled,           ///< after a stop
    session_over,        ///< the server has ended the session, and with it all of its locks
  };

  Kind kind = Kind::done;
  std::size_t rows = 0;  ///< returned, or changed
  std::string value;     ///< of the first row, if it has one column
  std::string tag;       ///< "COMMIT"

  bool done() const { return kind == Kind::done; }
};

/// How long a call may take: the command timeout, which for statements that wait for a lock begins
/// at `wait_until`.
struct Patience {
  TimePoint wait_until{};
  std::stop_token stop;
};

/// One connection to one database, through libpq's non-blocking calls, with deadlines and stops;
/// used by one client. Constructing it does not connect; a call connects first if there is no
/// connection. After a failure the connection is closed, and the next call reconnects. Reports
/// every statement to its Env. A stop cancels a statement that waits for a lock (over another
/// connection) and gives up other answers, all within Timeouts::after_stop, even if that takes a
/// new connection. If the Env ends the waits before the stop, as at the end of a run, the server
/// has the command timeout to confirm a cancellation.
class Session {
 public:
  Session(Endpoint endpoint, const Timeouts& timeouts, Env& env);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  StoreResult<void> connect(const std::stop_token& stop = {});
  /// Error replies of the server are failures of kind `rejected`, except for those in Answer::Kind.
  StoreResult<Answer> call(const Statement& statement, std::string_view key,
                           std::span<const std::string> parameters, const Patience& patience = {});

  /// Makes sure that this schema and its tables exist, and that statements find them by their bare
  /// names; once per connection. Fails as `refused` behind a transaction pooler, which would give
  /// these settings, and the session's locks, to other clients. Never fails as `unanswered`: no
  /// lock was requested.
  StoreResult<void> use_schema(const std::string& schema, std::string_view key,
                               const std::stop_token& stop);
  /// Makes sure that this schema and its tables exist, once per connection, without settings that
  /// statements rely on: also behind a transaction pooler.
  StoreResult<void> have_schema(const std::string& schema, std::string_view key,
                                const std::stop_token& stop);
  /// Sets how long the server lets a statement wait for a lock; 0: for ever. Fails as use_schema()
  /// does.
  StoreResult<void> set_lock_timeout(std::int64_t milliseconds, std::string_view key,
                                     const std::stop_token& stop);

  /// Tells which process at the server executes the open transaction, so that a wait in it can be
  /// cancelled behind a transaction pooler, too. False: `process` is no process.
  bool is_served_by(const std::string& process);

  /// For a lock that ends with the connection: marks its lease lost when the connection is closed.
  void bind(std::shared_ptr<LeaseState> lease) { bound_.push_back(std::move(lease)); }
  void unbind(const std::shared_ptr<LeaseState>& lease) { std::erase(bound_, lease); }

  void close() noexcept;
  const std::string& display() const { return endpoint_.display; }

  /// The failure of a statement whose answer is not `expected`. Closes the connection, so that any
  /// lock that it took ends with the session.
  tl::unexpected<StoreError> not_understood(std::string_view expected, const Answer& answer);

 private:
  struct Limits;
  using ResultPtr = std::unique_ptr<pg_result, void (*)(pg_result*)>;

  StoreResult<Answer> exchange(const Statement& statement, std::string_view key,
                               std::span<const std::string> parameters, const Patience& patience);
  /// Calls a statement that takes no lock: if it is lost, it counts as not sent.
  StoreResult<Answer> set_up(const Statement& statement, std::string_view key,
                             std::span<const std::string> parameters, const std::stop_token& stop);
  /// Begins to connect; waits only for the look-up of the host, for at most `longest`. The error
  /// says why it cannot.
  tl::expected<void, std::string> dial(Duration longest, const std::stop_token& stop);
  bool prepares(const Statement& statement) const {
    return statement.how == Statement::How::prepared && !schema_.empty();
  }
  /// Prepares the statement unless this connection already has.
  StoreResult<Answer> prepare(const std::string& sql, const Patience& patience);
  bool send(const Statement& statement, std::span<const std::string> parameters);
  /// Collects all results; returns the first error, or else the last result.
  StoreResult<ResultPtr> collect(Limits& limits, std::string_view key);
  /// Waits until a result can be taken. False: the connection was closed.
  StoreResult<bool> await_result(Limits& limits, std::string_view key);
  /// Waits until the next limit at most, and cancels the statement when it is to be interrupted.
  /// False: the connection was closed.
  StoreResult<bool> await_input(bool unsent, Limits& limits, std::string_view key);
  /// The answer to the sent statement. `waits`: it may wait for a lock.
  StoreResult<Answer> answer_to(bool waits, std::string_view key, const Patience& patience);
  /// Counts received bytes before they are read. False: more than any statement's answer has.
  bool takes_more();
  /// False when the time is up.
  bool wait_for_socket(short events, TimePoint give_up_at, const std::stop_token& stop);
  void cancel(std::string_view key, const std::stop_token& stop);
  /// Fails if other connections share this one's session at the server.
  StoreResult<void> check_pooler(std::string_view key, const std::stop_token& stop);
  /// With libpq's message.
  tl::unexpected<StoreError> broken(StoreError::Kind kind) const;
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return failure_at(endpoint_.display, kind, why);
  }

  const Endpoint endpoint_;
  const Timeouts timeouts_;
  Env& env_;
  std::unique_ptr<pg_conn, void (*)(pg_conn*)> connection_;
  std::unordered_map<std::string, std::string> prepared_;  ///< names by SQL, on this connection
  std::string process_;      ///< of the server, for this connection; empty: not asked yet
  std::string schema_;       ///< in use
  std::string made_schema_;  ///< exists
  std::int64_t lock_timeout_ = -1;
  std::int64_t received_ = 0;  ///< bytes, since the latest statement was sent
  std::vector<std::shared_ptr<LeaseState>> bound_;
};

}  // namespace lockbench::postgres
