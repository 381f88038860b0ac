#include "strategies/sql/lock.h"

#include <algorithm>
#include <utility>

#include "strategies/number.h"
#include "strategies/waiting/retry.h"

namespace lockbench::sql {
namespace {

/// The most failed requests to remember; locks beyond that end with their session.
constexpr std::size_t kMaxDoubts = 1024;

const Statement commit{.name = "COMMIT", .sql = "COMMIT"};
const Statement rollback{.name = "ROLLBACK", .sql = "ROLLBACK", .answered = "ROLLBACK"};
const Statement rollback_to{.name = "ROLLBACK TO SAVEPOINT",
                            .sql = "ROLLBACK TO SAVEPOINT further_lock",
                            .answered = "ROLLBACK"};

}  // namespace

const Statement begin{.name = "BEGIN", .sql = "BEGIN", .answered = "BEGIN"};
const Statement set_savepoint{
    .name = "SAVEPOINT", .sql = "SAVEPOINT further_lock", .answered = "SAVEPOINT"};

Lease ServerQueueLock::lease_of(const AcquireRequest& request, const Grant& grant) {
  // Confirmed at the grant, not at the request: then another client may have held the lock.
  Lease lease{.key = std::string(request.key),
              .token = random_token(env_),
              .mode = request.mode,
              .fencing = grant.fencing,
              .state = std::make_shared<LeaseState>(TimePoint::max(), env_.now())};
  granted(lease);
  return lease;
}

AcquireResult ServerQueueLock::acquire(const AcquireRequest& request) {
  const bool may_wait = request.deadline > env_.now();
  auto grant = attempt(request, may_wait);
  if (grant && grant->kind == Grant::Kind::taken && may_wait && env_.now() < request.deadline) {
    grant = failure_at(session_->display(), StoreError::Kind::rejected,
                       "the server has ended the wait before the deadline, by a limit of its own");
  }
  if (!grant) {
    return {.outcome = outcome_of(grant.error(), request.stop),
            .attempts = 1,
            .reason = grant.error().message};
  }
  if (grant->kind != Grant::Kind::granted) {
    return {.outcome = grant->kind == Grant::Kind::stopped ? AcquireOutcome::abandoned
                       : may_wait                          ? AcquireOutcome::timed_out
                                                           : AcquireOutcome::refused,
            .attempts = 1,
            .deadlock = grant->kind == Grant::Kind::deadlock};
  }
  return {.outcome = AcquireOutcome::acquired, .lease = lease_of(request, *grant), .attempts = 1};
}

StoreResult<Answer> call_alone(Session& session, const Statement& statement,
                               const std::string& schema, std::string_view key,
                               std::span<const std::string> parameters,
                               const std::stop_token& stop) {
  constexpr int kAttempts = 5;
  if (auto ready = session.have_schema(schema, key, stop); !ready) {
    return tl::unexpected(std::move(ready.error()));
  }
  for (int attempt = 1;; ++attempt) {
    auto answer = session.call(statement, key, parameters, {.wait_until = {}, .stop = stop});
    if (!answer) return answer;
    if (answer->kind == Answer::Kind::session_over) {
      return tl::unexpected(to_grant(answer, session).error());
    }
    const bool again =
        answer->kind == Answer::Kind::not_serializable || answer->kind == Answer::Kind::deadlock;
    if (!again || attempt == kAttempts) return answer;
  }
}

StoreResult<Grant> to_grant(const StoreResult<Answer>& answer, Session& session) {
  if (!answer) return tl::unexpected(answer.error());
  if (answer->kind == Answer::Kind::session_over) {
    return failure_at(session.display(), StoreError::Kind::rejected,
                      "the server has ended the session");
  }
  if (answer->kind == Answer::Kind::cancelled) return Grant{.kind = Grant::Kind::stopped};
  if (answer->kind == Answer::Kind::deadlock) return Grant{.kind = Grant::Kind::deadlock};
  const bool none = answer->done() && answer->rows == 0 && answer->value.empty();
  if (!answer->done() || none) return Grant{.kind = Grant::Kind::taken};
  const auto number = parse_number<std::uint64_t>(answer->value);
  if (answer->rows != 1 || !number) return session.not_understood("a number", *answer);
  return Grant{.kind = Grant::Kind::granted, .fencing = *number};
}

ReleaseResult NamedLock::release(const Lease& lease) {
  // The server does not distinguish the leases of one session.
  const bool held = held_.erase(lease.state) > 0 && !lease.state->lost_at();
  if (!held) return {ReleaseOutcome::not_owner, {}};
  const Name name{name_of(lease.key), lease.mode};
  const auto answer = unlock(name, lease.key);
  session().unbind(lease.state);
  if (!answer) {
    after_failure(name, lease.key);
    return {ReleaseOutcome::failed, answer.error().message};
  }
  const bool released = answer->value == "t";
  if (answer->done() && !released && answer->value != "f") {
    return {ReleaseOutcome::failed, session().not_understood("t or f", *answer).value().message};
  }
  settle_doubts(name, lease.key);
  if (released) return {ReleaseOutcome::released, {}};
  lease.state->mark_lost(env().now());
  return {ReleaseOutcome::not_owner, {}};
}

StoreResult<Grant> NamedLock::take(const AcquireRequest& request, bool may_wait) {
  const Name name{name_of(request.key), request.mode};
  const auto answer = ask(taking(request, may_wait), request.key, name.first,
                          {.wait_until = request.deadline, .stop = request.stop});
  const bool in_error = answer ? answer->kind == Answer::Kind::cancelled
                               : answer.error().kind == StoreError::Kind::rejected;
  if (in_error) {
    after_failure(name, request.key);
  } else if (answer && (answer->kind == Answer::Kind::lock_not_available ||
                        answer->kind == Answer::Kind::deadlock)) {
    take_back(name, request.key);
  }
  return to_grant(answer, session());
}

void NamedLock::granted(const Lease& lease) {
  session().bind(lease.state);
  held_.emplace(lease.state, Name{name_of(lease.key), lease.mode});
}

StoreResult<Answer> NamedLock::unlock(const Name& name, std::string_view key) {
  return ask(unlocking(name.second), key, name.first, {});
}

void NamedLock::after_failure(const Name& name, std::string_view key) {
  std::erase_if(held_, [](const auto& lease) { return lease.first->lost_at().has_value(); });
  if (held_.empty()) return session().close();
  take_back(name, key);
}

void NamedLock::take_back(const Name& name, std::string_view key) {
  if (!is_held(name)) {
    (void)unlock(name, key);
  } else if (doubts_.size() < kMaxDoubts) {
    doubts_.insert(name);
  }
}

void NamedLock::settle_doubts(const Name& name, std::string_view key) {
  if (is_held(name)) return;
  for (auto left = doubts_.erase(name); left > 0; --left) (void)unlock(name, key);
}

bool NamedLock::is_held(const Name& name) const {
  return std::any_of(held_.begin(), held_.end(), [&](const auto& lease) {
    return lease.second == name && !lease.first->lost_at();
  });
}

ReleaseResult TransactionLock::release(const Lease& lease) {
  if (held_.erase(lease.token) == 0) return {ReleaseOutcome::not_owner, {}};
  if (lease.state->lost_at()) return {ReleaseOutcome::not_owner, {}};
  if (!held_.empty()) {
    session().unbind(lease.state);
    return {ReleaseOutcome::released, {}};
  }
  return end(lease);
}

StoreResult<Answer> TransactionLock::begin_for(const AcquireRequest& request, bool further) {
  return ask(session(), further ? set_savepoint : begin, request);
}

StoreResult<Grant> TransactionLock::take(const AcquireRequest& request, bool may_wait) {
  StoreResult<std::optional<Grant>> grant = lock_in_transaction(request, may_wait);
  if (grant && !grant->has_value()) {
    const auto made = make_row(request);
    if (!made) return tl::unexpected(made.error());
    if (*made) grant = lock_in_transaction(request, may_wait);
  }
  if (!grant) return tl::unexpected(grant.error());
  return grant->value_or(Grant{.kind = Grant::Kind::taken});
}

void TransactionLock::granted(const Lease& lease) {
  session().bind(lease.state);
  held_.emplace(lease.token, lease.state);
}

StoreResult<Answer> TransactionLock::ask(Session& session, const Statement& statement,
                                         const AcquireRequest& request,
                                         std::span<const std::string> parameters) {
  auto answer = session.call(statement, request.key, parameters,
                             {.wait_until = request.deadline, .stop = request.stop});
  if (answer && answer->kind == Answer::Kind::session_over) {
    return tl::unexpected(to_grant(answer, session).error());
  }
  return answer;
}

bool TransactionLock::holds_any() {
  std::erase_if(held_, [](const auto& lease) { return lease.second->lost_at().has_value(); });
  return !held_.empty();
}

ReleaseResult TransactionLock::end(const Lease& lease) {
  const auto answer = session().call(commit, lease.key, {});
  session().unbind(lease.state);
  if (!answer) {
    // An open transaction ends with the connection.
    session().close();
    return {ReleaseOutcome::failed, answer.error().message};
  }
  if (answer->done() && answer->tag == "COMMIT") return {ReleaseOutcome::released, {}};
  if (answer->done() && answer->tag != "ROLLBACK") {
    return {ReleaseOutcome::failed,
            session().not_understood("COMMIT or ROLLBACK", *answer).value().message};
  }
  lease.state->mark_lost(env().now());
  // A rollback takes back what was set in the transaction.
  session().close();
  return {ReleaseOutcome::not_owner, {}};
}

StoreResult<std::optional<Grant>> TransactionLock::lock_in_transaction(
    const AcquireRequest& request, bool may_wait) {
  const auto begun = begin_for(request, holds_any());
  if (!begun) return leave_failed(begun.error());
  // Outside a transaction the lock would last for the statement only.
  if (!begun->done()) return session().not_understood("BEGIN", *begun);
  const auto locked = lock(request, may_wait);
  if (!locked) return leave_failed(locked.error());
  if (!locked->done() || locked->rows == 0) {
    // The server may have ended the whole transaction, to break a deadlock.
    if (auto ended = ask(session(), holds_any() ? rollback_to : rollback, request); !ended) {
      return leave_failed(ended.error());
    }
    if (locked->done()) return std::nullopt;
    return to_grant(locked, session());
  }
  auto numbered = to_grant(locked, session());
  if (!numbered) return leave_failed(numbered.error());
  return numbered;
}

tl::unexpected<StoreError> TransactionLock::leave_failed(const StoreError& error) {
  const bool goes_on = holds_any() && error.kind == StoreError::Kind::rejected;
  // An open transaction ends with the connection.
  if (!goes_on || !session().call(rollback_to, {}, {})) session().close();
  return tl::unexpected(error);
}

StoreResult<Answer> RowLock::lock(const AcquireRequest& request, bool may_wait) {
  const std::string key(request.key);
  auto locked = ask(session(), select(request, may_wait), request, {&key, 1});
  if (!locked || !locked->done() || locked->rows == 0) return locked;
  if (locked->value == "0") return Answer{.kind = Answer::Kind::lock_not_available};
  if (locked->value != "1") return session().not_understood("0 or 1", *locked);
  return ask(session(), statements().next_number, request);
}

StoreResult<bool> RowLock::make_row(const AcquireRequest& request) {
  const std::string key(request.key);
  const Statement& insert = statements().insert;
  const auto made = [](const Answer&) { return true; };
  if (!holds_any()) return ask(session(), insert, request, {&key, 1}).map(made);
  auto ready = rows_->use_schema(schema_of_key(request.key), request.key, request.stop);
  return before_request(ready.and_then([&] {
    return ask(*rows_, insert, request, {&key, 1}).map(made);
  }));
}

Descriptor in_transaction(Descriptor lock, Traits differs) {
  differs.expiry = Expiry::session;
  differs.release_check = OwnerCheck::atomic;
  differs.released_together = true;
  differs.ends_with_connection = true;
  differs.reentrant = true;
  differs.fencing = true;
  lock.acquire_commands.emplace_back(
      "ROLLBACK (if not granted; to the savepoint of a further lock)");
  lock.release_commands = {"COMMIT (with the last lock of the client)"};
  lock.traits = std::move(differs);
  return with_known_hazards(std::move(lock));
}

}  // namespace lockbench::sql
