#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "strategies/descriptor.h"
#include "strategies/sql/session.h"
#include "strategies/store.h"
#include "strategies/waiting/retry.h"

namespace lockbench::sql {

/// The result of an attempt at a lock that waits at the server.
struct Grant {
  enum class Kind { granted, taken, stopped, deadlock };
  Kind kind = Kind::taken;
  std::uint64_t fencing = 0;
};

/// The common part of locks that end with their session, and mostly wait in the server's queue.
/// Such a lease does not expire: it is lost when the client finds the connection lost.
class ServerQueueLock : public LockStrategy {
 public:
  using MakeSession = std::unique_ptr<Session> (*)(const Context&);

  ServerQueueLock(const Context& context, MakeSession make)
      : env_(context.env), session_(make(context)) {}

  StoreResult<void> connect() override { return session_->connect(); }
  AcquireResult acquire(const AcquireRequest& request) override;

 protected:
  /// Before each attempt: settings of the session, and its schema.
  virtual StoreResult<void> prepare(const AcquireRequest& request, bool /*may_wait*/) {
    return session_->use_schema(schema_of_key(request.key), request.key, request.stop);
  }
  /// Waits for the lock if `may_wait`, after prepare().
  virtual StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) = 0;
  /// Called after the session was granted the lock of `lease`.
  virtual void granted(const Lease& lease) = 0;

  StoreResult<Grant> attempt(const AcquireRequest& request, bool may_wait) {
    return prepare(request, may_wait).and_then([&] { return take(request, may_wait); });
  }
  /// Of a grant; calls granted().
  Lease lease_of(const AcquireRequest& request, const Grant& grant);

  Env& env() const { return env_; }
  Session& session() { return *session_; }

 private:
  Env& env_;
  const std::unique_ptr<Session> session_;
};

/// For ServerQueueLock: a session with the first server.
template <class Kind, auto kParse>
std::unique_ptr<Session> make_session(const Context& context) {
  return std::make_unique<Kind>(endpoints_of(context, kParse).front(), context.options.timeouts(),
                                context.env);
}

/// Calls a statement that is a transaction of its own, and names the schema or is on a session that
/// uses it. It is repeated a few times if the server has ended it without effect: to break a
/// deadlock, or as a stricter isolation than needed, a user's default, made it do.
StoreResult<Answer> call_alone(Session& session, const Statement& statement,
                               const std::string& schema, std::string_view key,
                               std::span<const std::string> parameters,
                               const std::stop_token& stop);

/// Converts the answer of a statement that returns a fencing number if it is granted.
StoreResult<Grant> to_grant(const StoreResult<Answer>& answer, Session& session);

/// A lock with a name, which belongs to the session: first come, first served, and it ends with the
/// session. The server counts a session's grants, separately for each mode.
class NamedLock : public ServerQueueLock {
 public:
  using ServerQueueLock::ServerQueueLock;

  ReleaseResult release(const Lease& lease) override;

 protected:
  /// The only parameter of its statements.
  virtual std::string name_of(std::string_view key) const = 0;
  /// Draws a fencing number while the lock is held; no row: it is another's.
  virtual Statement taking(const AcquireRequest& request, bool may_wait) const = 0;
  /// Answers with t: it was held; or f.
  virtual Statement unlocking(Mode mode) const = 0;
  virtual StoreResult<Answer> ask(const Statement& statement, std::string_view key,
                                  const std::string& name, const Patience& patience) {
    return session().call(statement, key, {&name, 1}, patience);
  }

  StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) override;
  void granted(const Lease& lease) override;

 private:
  using Name = std::pair<std::string, Mode>;

  StoreResult<Answer> unlock(const Name& name, std::string_view key);
  /// After a failed statement. A grant outlives the failure of its statement, so the session may
  /// hold a lock without a lease of this client.
  void after_failure(const Name& name, std::string_view key);
  /// The same if the session goes on. Needed after a wait in vain, too: the lock may be granted
  /// just before the server sees that the time is up.
  void take_back(const Name& name, std::string_view key);
  /// Once a lock's last lease is released, releases the grants that failed requests may have added.
  void settle_doubts(const Name& name, std::string_view key);
  bool is_held(const Name& name) const;

  std::map<std::shared_ptr<LeaseState>, Name> held_;  ///< by lease
  std::multiset<Name> doubts_;                        ///< see take_back()
};

/// A lock that the server frees at the end of its transaction, which stays open while the lock is
/// held. All locks of a client are in one transaction, as in applications, so that the server sees
/// deadlocks: each stays taken until the last of them is released.
class TransactionLock : public ServerQueueLock {
 public:
  using ServerQueueLock::ServerQueueLock;

  ReleaseResult release(const Lease& lease) override;

 protected:
  /// Begins the transaction, or for a `further` lock sets a savepoint in it: a failed wait for it
  /// would otherwise end the transaction, and with it all locks.
  virtual StoreResult<Answer> begin_for(const AcquireRequest& request, bool further);
  /// Locks within the transaction, and draws a fencing number. No row: the lock was not granted.
  virtual StoreResult<Answer> lock(const AcquireRequest& request, bool may_wait) = 0;
  /// If there was no row: whether there is one now.
  virtual StoreResult<bool> make_row(const AcquireRequest& /*request*/) { return false; }

  StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) override;
  void granted(const Lease& lease) override;

  StoreResult<Answer> ask(Session& session, const Statement& statement,
                          const AcquireRequest& request,
                          std::span<const std::string> parameters = {});
  /// Forgets the lost ones.
  bool holds_any();

 private:
  /// COMMIT; a server may answer ROLLBACK if the transaction had failed.
  ReleaseResult end(const Lease& lease);
  /// Nothing: no row was returned.
  StoreResult<std::optional<Grant>> lock_in_transaction(const AcquireRequest& request,
                                                        bool may_wait);
  /// After a failure inside the transaction, which the next COMMIT would turn into a rollback of
  /// all locks.
  tl::unexpected<StoreError> leave_failed(const StoreError& error);

  std::unordered_map<std::string, std::shared_ptr<LeaseState>> held_;  ///< by token
};

/// Begins the transaction, and sets the savepoint in it.
extern const Statement begin, set_savepoint;

/// Locks the key's row by SELECT ... FOR UPDATE.
class RowLock : public TransactionLock {
 public:
  RowLock(const Context& context, MakeSession make)
      : TransactionLock(context, make), rows_(make(context)) {}

 protected:
  /// The one parameter of these statements is the key.
  struct Statements {
    Statement insert;       ///< the row, unless there is one
    Statement next_number;  ///< of the fencing sequence; without parameter
  };
  virtual const Statements& statements() const = 0;
  /// Answers with 1: locked; 0: it is another's; or no row: there is none.
  virtual Statement select(const AcquireRequest& request, bool may_wait) const = 0;

  StoreResult<Answer> lock(const AcquireRequest& request, bool may_wait) override;
  /// The first client to use a key creates its row, in a transaction of its own: in the client's,
  /// others would wait for its end.
  StoreResult<bool> make_row(const AcquireRequest& request) override;

 private:
  /// Makes rows while locks are held. Connects at the first of them, and stays: a figure of each
  /// would be that of connecting.
  const std::unique_ptr<Session> rows_;
};

/// As a queue's workers do: a row that another client has locked is passed over, so no attempt
/// waits at the server. `Row` is a RowLock.
template <class Row>
class SkipLocked : public Row {
 public:
  explicit SkipLocked(const Context& context) : Row(context), waiting_(context.waiting) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    return retry(request, this->env(), waiting_, [&](const AcquireRequest& once) -> Attempt {
      const auto grant = this->attempt(once, false);
      if (!grant) return tl::unexpected(grant.error());
      if (grant->kind != Grant::Kind::granted) return std::nullopt;
      return this->lease_of(once, *grant);
    });
  }

 protected:
  Statement select(const AcquireRequest& /*request*/, bool /*may_wait*/) const override {
    return Row::skip_locked();
  }

 private:
  const WaitPolicy waiting_;
};

/// A descriptor of locks in transactions, with the statements that end them. `differs`: what is not
/// as for all of them.
Descriptor in_transaction(Descriptor lock, Traits differs);

}  // namespace lockbench::sql
