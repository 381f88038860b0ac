#include "strategies/sql/session.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <optional>

#include "strategies/carrier.h"

namespace lockbench::sql {
namespace {

/// After a stop, or the end of a wait: how long an answer under way may take before the statement
/// is cancelled.
constexpr Duration kLastMoment = std::chrono::milliseconds(5);
/// The server ends a wait in time itself unless the statement waits twice, as PostgreSQL's for a
/// row: first for other waiters, then for the holder. A statement this overdue is cancelled.
constexpr Duration kOverdue = std::chrono::milliseconds(250);
/// Of a server's answer to one statement.
constexpr std::int64_t kLongestAnswer = std::int64_t{1} << 20;

TimePoint later(TimePoint time, Duration by) {
  return time > TimePoint::max() - by ? TimePoint::max() : time + by;
}

}  // namespace

Limits::Limits(bool waits, const Patience& its_patience, std::stop_token its_waiting_stop,
               const Timeouts& its_timeouts, TimePoint now)
    : patience(its_patience),
      waiting_stop(std::move(its_waiting_stop)),
      timeouts(its_timeouts),
      wait_is_over(!waits),
      cancelled(!waits),
      interrupt_at(waits ? later(patience.wait_until, kOverdue) : TimePoint::max()),
      give_up_at(later(waits ? std::max(now, patience.wait_until) : now, timeouts.answer)) {}

void Limits::notice_stops(TimePoint now) {
  const bool ends_wait = !wait_is_over && waiting_stop.stop_requested();
  const bool hurries = !hurried && patience.stop.stop_requested();
  wait_is_over = wait_is_over || ends_wait;
  hurried = hurried || hurries;
  if (ends_wait || hurries) interrupt_at = std::min(interrupt_at, now + kLastMoment);
}

void Limits::interrupted(TimePoint now) {
  // A run's end cancels the waits of all clients together: too many for the short time after a
  // stop.
  const Duration left = hurried ? timeouts.after_stop * 3 / 10 : timeouts.answer;
  give_up_at = std::min(give_up_at, now + left);
  interrupt_at = TimePoint::max();
}

void Session::lose_bound() {
  for (const auto& lease : bound_) lease->mark_lost(env_.now());
  bound_.clear();
}

tl::unexpected<StoreError> Session::not_understood(std::string_view expected,
                                                   const Answer& answer) {
  close();
  return fail(StoreError::Kind::unanswered,
              fmt::format("it answered with \"{}\" and \"{}\", expected {}", answer.tag,
                          answer.value, expected));
}

StoreResult<Answer> Session::call(const Statement& statement, std::string_view key,
                                  std::span<const std::string> parameters,
                                  const Patience& patience) {
  const CommandInfo info{.store = store_,
                         .endpoint = display_,
                         .name = statement.name,
                         .key = key,
                         .blocks = statement.waits};
  StoreResult<Answer> answer = fail(StoreError::Kind::not_sent, "the connection was cut");
  if (env_.before_command(info) == CommandFate::drop) {
    close();
  } else if (auto connected = connect(patience.stop); !connected) {
    answer = tl::unexpected(std::move(connected.error()));
  } else {
    answer = exchange(statement, key, parameters, patience);
    if (answer && answer->done() && !answer->tag.starts_with(statement.answered)) {
      answer = not_understood(statement.answered, *answer);
    }
  }
  const bool answered = answer || answer.error().kind == StoreError::Kind::rejected;
  const bool in_vain = statement.waits && answered && !(answer && answer->done());
  const CommandFate fate = env_.after_command(info, in_vain    ? CommandEnd::in_vain
                                                    : answered ? CommandEnd::answered
                                                               : CommandEnd::lost);
  const bool over = answer && answer->kind == Answer::Kind::session_over;
  if (!answered || over) close();
  if (answered && fate == CommandFate::drop) {
    close();
    return fail(StoreError::Kind::unanswered, "the answer was lost");
  }
  return answer;
}

StoreResult<Answer> Session::set_up(const Statement& statement, std::string_view key,
                                    std::span<const std::string> parameters,
                                    const std::stop_token& stop) {
  auto answer = call(statement, key, parameters, {.wait_until = {}, .stop = stop});
  if (answer && !answer->done()) {
    return fail(StoreError::Kind::rejected, fmt::format("{} was not carried out", statement.name));
  }
  return before_request(std::move(answer));
}

StoreResult<std::vector<PeerAddress>> Session::find_addresses(const std::string& host, int port,
                                                              Duration longest,
                                                              const std::stop_token& stop) const {
  auto found = look_up(host, port)->get(longest, stop);
  if (!found) {
    return fail(StoreError::Kind::not_sent,
                stop.stop_requested() ? "stopped while connecting"
                                      : "no connection within " + format_duration(longest) +
                                            ": its name is still being looked up");
  }
  if (!*found) return fail(StoreError::Kind::not_sent, found->error());
  return **std::move(found);
}

bool Session::wait_for_socket(int descriptor, short events, TimePoint give_up_at,
                              const std::stop_token& stop) {
  const TimePoint now = env_.now();
  if (now >= give_up_at) return false;
  const Duration limit = std::min<Duration>(give_up_at - now, std::chrono::hours(1));
  pollfd ready{.fd = descriptor, .events = events, .revents = 0};
  Carrier::current().poll({&ready, 1}, limit, stop);  // the library checks the socket itself
  return true;
}

bool Session::takes_more(int descriptor) {
  int waiting = 0;
  if (ioctl(descriptor, FIONREAD, &waiting) == 0) received_ += waiting;
  return received_ <= kLongestAnswer;
}

StoreResult<void> Session::await_socket(int descriptor, short events, Limits& limits,
                                        std::string_view key) {
  limits.notice_stops(env_.now());
  if (env_.now() >= limits.interrupt_at) {
    if (!std::exchange(limits.cancelled, true)) cancel(key, limits.patience.stop);
    limits.interrupted(env_.now());
  }
  const TimePoint until = std::min(limits.give_up_at, limits.interrupt_at);
  if (!wait_for_socket(descriptor, events, until, limits.next_stop()) &&
      env_.now() >= limits.give_up_at) {
    return fail(StoreError::Kind::unanswered,
                limits.patience.stop.stop_requested()
                    ? "stopped while waiting for the answer"
                    : "no answer within " + format_duration(timeouts_));
  }
  if (!takes_more(descriptor)) return fail(StoreError::Kind::unanswered, "the answer is too long");
  return {};
}

Timeouts Session::cancelling(const std::stop_token& stop) const {
  return {stop.stop_requested() ? timeouts_.after_stop * 3 / 5 : timeouts_.answer,
          timeouts_.after_stop};
}

void Session::cancel_with(Session& other, const Statement& statement, std::string_view key,
                          std::span<const std::string> parameters, const std::stop_token& stop) {
  const Patience patience{.wait_until = {},
                          .stop = stop.stop_requested() ? std::stop_token() : stop};
  // If this fails, the connection is closed, which ends the wait too, but later.
  (void)other.call(statement, key, parameters, patience);
}

std::optional<Answer::Kind> Session::meaning_of(std::optional<Answer::Kind> error, bool waits,
                                                const Limits& limits) {
  if (error != Answer::Kind::cancelled) return error;
  if (limits.waiting_stop.stop_requested() || limits.patience.stop.stop_requested()) {
    return Answer::Kind::cancelled;
  }
  // Cancelled because it was overdue, or by another user.
  const bool overdue = waits && env_.now() >= limits.patience.wait_until;
  return overdue ? std::optional(Answer::Kind::lock_not_available) : std::nullopt;
}

}  // namespace lockbench::sql
