#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>

#include "strategies/postgres/client/endpoint.h"
#include "strategies/sql/session.h"

struct pg_conn;
struct pg_result;

namespace lockbench::postgres {

using sql::Answer;
using sql::Limits;
using sql::Patience;
using sql::Statement;

/// A statement for users whose default is off: fencing numbers grow over a crash of the server only
/// if commits are on disk. `only_now`: for this transaction.
std::string commit_to_disk(bool only_now);

/// Through libpq's non-blocking calls.
class Session : public sql::Session {
 public:
  Session(Endpoint endpoint, const Timeouts& timeouts, Env& env);
  ~Session() override;

  StoreResult<void> connect(const std::stop_token& stop = {}) override;

  /// Fails as `refused` behind a transaction pooler, which would give these settings, and the
  /// session's locks, to other clients.
  StoreResult<void> use_schema(const std::string& schema, std::string_view key,
                               const std::stop_token& stop) override;
  /// Also behind a transaction pooler.
  StoreResult<void> have_schema(const std::string& schema, std::string_view key,
                                const std::stop_token& stop) override;
  /// Sets how long the server lets a statement wait for a lock; 0: for ever. Fails as use_schema()
  /// does.
  StoreResult<void> set_lock_timeout(std::int64_t milliseconds, std::string_view key,
                                     const std::stop_token& stop);

  /// Tells which process at the server executes the open transaction, so that a wait in it can be
  /// cancelled behind a transaction pooler, too. False: `process` is no process.
  bool is_served_by(const std::string& process);

  void close() noexcept override;

 protected:
  StoreResult<Answer> exchange(const Statement& statement, std::string_view key,
                               std::span<const std::string> parameters,
                               const Patience& patience) override;
  void cancel(std::string_view key, const std::stop_token& stop) override;

 private:
  using ResultPtr = std::unique_ptr<pg_result, void (*)(pg_result*)>;

  /// Begins to connect; waits only for the look-up of the host, for at most `longest`.
  StoreResult<void> dial(Duration longest, const std::stop_token& stop);
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
  /// Waits until the next limit at most. False: the connection was closed.
  StoreResult<bool> await_input(bool unsent, Limits& limits, std::string_view key);
  /// The answer to the sent statement. `waits`: it may wait for a lock.
  StoreResult<Answer> answer_to(bool waits, std::string_view key, const Patience& patience);
  /// Fails if other connections share this one's session at the server.
  StoreResult<void> check_pooler(std::string_view key, const std::stop_token& stop);
  /// With libpq's message.
  tl::unexpected<StoreError> broken(StoreError::Kind kind) const;

  const Endpoint endpoint_;
  std::unique_ptr<pg_conn, void (*)(pg_conn*)> connection_;
  std::unordered_map<std::string, std::string> prepared_;  ///< names by SQL, on this connection
  std::string process_;      ///< of the server, for this connection; empty: not asked yet
  std::string schema_;       ///< in use
  std::string made_schema_;  ///< exists
  std::int64_t lock_timeout_ = -1;
};

}  // namespace lockbench::postgres
