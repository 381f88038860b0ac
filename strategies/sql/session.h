#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/lease.h"
#include "strategies/transport/lookup.h"

/// What the locks on databases share.
namespace lockbench::sql {

struct Statement {
  enum class How {
    /// Prepared once per connection, if the client can, which costs the first call another round
    /// trip. As `once` before use_schema(): a transaction pooler may be in between.
    prepared,
    once,    ///< with parameters, not prepared
    script,  ///< several statements without parameters
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
    lock_not_available,  ///< without waiting, or after the longest wait
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

/// How long the answer to a statement is awaited, and when the statement is interrupted. After a
/// stop was noticed, waits ignore it: it would end each of them immediately.
struct Limits {
  /// `its_waiting_stop` ends the wait for a lock; the Env may request it before the other stop.
  Limits(bool waits, const Patience& its_patience, std::stop_token its_waiting_stop,
         const Timeouts& its_timeouts, TimePoint now);

  void notice_stops(TimePoint now);
  void interrupted(TimePoint now);
  std::stop_token next_stop() const {
    if (!wait_is_over) return waiting_stop;
    return hurried ? std::stop_token() : patience.stop;
  }

  const Patience& patience;
  const std::stop_token waiting_stop;
  const Timeouts& timeouts;
  bool wait_is_over;     ///< for a lock
  bool cancelled;        ///< or nothing is to be
  bool hurried = false;  ///< by the stop
  TimePoint interrupt_at, give_up_at;
};

/// One connection to one database, with deadlines and stops; used by one client. Constructing it
/// does not connect; a call connects first if there is no connection. After a failure the
/// connection is closed, and the next call reconnects. Reports every statement to its Env. A stop
/// cancels a statement that waits for a lock (over another connection) and gives up other answers,
/// all within Timeouts::after_stop, even if that takes a new connection. If the Env ends the waits
/// before the stop, as at the end of a run, the server has the command timeout to confirm a
/// cancellation.
class Session {
 public:
  /// `store`: for the Env. `display`: the server, without credentials.
  Session(std::string_view store, std::string display, const Timeouts& timeouts, Env& env)
      : timeouts_(timeouts), env_(env), store_(store), display_(std::move(display)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  virtual StoreResult<void> connect(const std::stop_token& stop = {}) = 0;
  /// Error replies of the server are failures of kind `rejected`, except for those in Answer::Kind.
  StoreResult<Answer> call(const Statement& statement, std::string_view key,
                           std::span<const std::string> parameters, const Patience& patience = {});

  /// Makes sure that this schema and its tables exist, and that statements find them by their bare
  /// names; once per connection. Never fails as `unanswered`: no lock was requested.
  virtual StoreResult<void> use_schema(const std::string& schema, std::string_view key,
                                       const std::stop_token& stop) = 0;
  /// The same for statements that name the schema, and rely on no settings.
  virtual StoreResult<void> have_schema(const std::string& schema, std::string_view key,
                                        const std::stop_token& stop) {
    return use_schema(schema, key, stop);
  }

  /// For a lock that ends with the connection: marks its lease lost when the connection is closed.
  void bind(std::shared_ptr<LeaseState> lease) { bound_.push_back(std::move(lease)); }
  void unbind(const std::shared_ptr<LeaseState>& lease) { std::erase(bound_, lease); }
  /// The server has ended all locks of the session, or of its transaction.
  void lose_bound();

  virtual void close() noexcept = 0;
  const std::string& display() const { return display_; }

  /// The failure of a statement whose answer is not `expected`. Closes the connection, so that any
  /// lock that it took ends with the session.
  tl::unexpected<StoreError> not_understood(std::string_view expected, const Answer& answer);
  /// The failure of a statement that waited for a row in vain.
  tl::unexpected<StoreError> stayed_locked() const {
    return fail(StoreError::Kind::rejected, "the row stayed locked too long");
  }

 protected:
  /// Of a server's answer to one statement.
  static constexpr int kMostResults = 64;

  /// Sends the statement over the open connection.
  virtual StoreResult<Answer> exchange(const Statement& statement, std::string_view key,
                                       std::span<const std::string> parameters,
                                       const Patience& patience) = 0;

  /// Calls a statement that takes no lock: if it is lost, it counts as not sent.
  StoreResult<Answer> set_up(const Statement& statement, std::string_view key,
                             std::span<const std::string> parameters, const std::stop_token& stop);
  /// The addresses of a server's host. `longest`: to find them.
  StoreResult<std::vector<PeerAddress>> find_addresses(const std::string& host, int port,
                                                       Duration longest,
                                                       const std::stop_token& stop) const;
  /// Of a statement that is sent now.
  Limits limits_of(bool waits, const Patience& patience) {
    return {waits, patience, waits ? env_.waiting_stop(patience.stop) : std::stop_token(),
            timeouts_, env_.now()};
  }
  /// Waits for the socket, and has the statement cancelled when it is to be interrupted. The error
  /// says that the time is up.
  StoreResult<void> await_socket(int descriptor, short events, Limits& limits,
                                 std::string_view key);
  /// Cancels the statement that waits for a lock, over another connection.
  virtual void cancel(std::string_view key, const std::stop_token& stop) = 0;
  /// With another session: sends this statement within what a cancellation may take.
  void cancel_with(Session& other, const Statement& statement, std::string_view key,
                   std::span<const std::string> parameters, const std::stop_token& stop);
  /// For a connection that cancels.
  Timeouts cancelling(const std::stop_token& stop) const;
  /// What an error means that ended the statement, if it means this; nothing: an error.
  std::optional<Answer::Kind> meaning_of(std::optional<Answer::Kind> error, bool waits,
                                         const Limits& limits);
  /// False when the time is up.
  bool wait_for_socket(int descriptor, short events, TimePoint give_up_at,
                       const std::stop_token& stop);
  /// Counts received bytes before they are read. False: more than any statement's answer has.
  bool takes_more(int descriptor);
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return failure_at(display_, kind, why);
  }

  const Timeouts timeouts_;
  Env& env_;
  std::int64_t received_ = 0;  ///< bytes, since the latest statement was sent

 private:
  const std::string_view store_;
  const std::string display_;
  std::vector<std::shared_ptr<LeaseState>> bound_;
};

}  // namespace lockbench::sql
