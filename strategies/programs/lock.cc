#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "strategies/programs/client/process.h"
#include "strategies/programs/program.h"
#include "strategies/waiting/retry.h"

namespace lockbench::program {
namespace {

// The longest start of a runtime on a busy machine; a JVM takes seconds.
constexpr Duration kStart = std::chrono::seconds(20);
constexpr Duration kLongestWait = std::chrono::hours(24);
// A library that has not answered by then has found the lock taken.
constexpr Duration kUntilWaiting = std::chrono::milliseconds(100);
constexpr Duration kClose = std::chrono::seconds(1);

std::int64_t milliseconds(Duration duration) {
  return std::chrono::floor<std::chrono::milliseconds>(duration).count();
}

/// The lock of a client program. Each call is one request, and its answer decides.
class Lock final : public ProgramLock {
 public:
  Lock(const Client& client, const Context& context, bool waits, bool expires)
      : program_(client),
        context_(context),
        env_(context.env),
        waits_(waits),
        expires_(expires),
        number_(context.client % context.options.clients_per_process) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() override {
    if (process_ == nullptr) return;
    Call call = request("close");
    call.await(now() + kClose);
  }

  StoreResult<void> connect() override {
    if (context_.ttl == Duration::zero()) return {};  // the first request starts it
    return start(context_.ttl);
  }

  AcquireResult acquire(const AcquireRequest& request) override {
    if (waits_) return ask_for(request, request.deadline);
    AcquireResult last;
    AcquireResult result =
        retry(request, env_, context_.waiting, [&](const AcquireRequest& once) -> Attempt {
          last = ask_for(once, TimePoint::min());
          if (last.outcome == AcquireOutcome::acquired) return std::move(last.lease);
          if (last.outcome == AcquireOutcome::refused) return std::nullopt;
          const bool unknown = last.outcome == AcquireOutcome::unknown;
          return tl::unexpected(StoreError{
              unknown ? StoreError::Kind::unanswered : StoreError::Kind::rejected, last.reason});
        });
    return result;
  }

  ReleaseResult release(const Lease& lease) override { return release(lease, Duration::max()); }

  ReleaseResult release(const Lease& lease, Duration cancel_after) override {
    Call call = request("release", {{"key", lease.key}});
    const TimePoint until = now() + context_.options.command_timeout;
    if (cancel_after < context_.options.command_timeout && !call.await(now() + cancel_after)) {
      cancel(call);
    }
    call.await(until);
    if (has(call, "released")) return {ReleaseOutcome::released, {}};
    if (has(call, "not_held")) return {ReleaseOutcome::not_owner, {}};
    return {ReleaseOutcome::failed, why(call)};
  }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    const TimePoint asked_at = now();
    Call call = request("renew", {{"key", lease.key}, {"ttl_ms", ceil_milliseconds(ttl)}});
    call.await(asked_at + context_.options.command_timeout);
    if (has(call, "renewed")) {
      lease.state->extend(asked_at + ttl, asked_at);
      return {RenewOutcome::renewed, {}};
    }
    if (has(call, "unsupported")) return {RenewOutcome::unsupported, {}};
    if (!has(call, "lost")) return {RenewOutcome::failed, why(call)};
    lease.state->mark_lost(now());
    return {RenewOutcome::not_owner, {}};
  }

  void look(const Lease& lease) override {
    const TimePoint asked_at = now();
    Call call = request("held", {{"key", lease.key}});
    call.await(asked_at + context_.options.command_timeout);
    const auto held = call.answer() == nullptr ? std::nullopt : flag_in(*call.answer(), "held");
    if (!held) return;
    LeaseState& state = *lease.state;
    // It may have learned of the loss at any time since it last said that it holds the lock.
    if (!*held) return state.mark_lost(state.confirmed_at());
    const TimePoint until = state.valid_until();
    state.extend(until > asked_at ? until : TimePoint::max(), asked_at);
  }

  Done work(Duration busy) override {
    Call call = request("work", {{"ms", milliseconds(busy)}});
    call.await(now() + busy + context_.options.command_timeout);
    if (has(call, "unsupported")) return Done::unsupported;
    return call.answer() != nullptr ? Done::done : Done::failed;
  }

  void signal(int number) override {
    if (process_ != nullptr) process_->signal(number);
  }

 private:
  TimePoint now() { return env_.now(); }

  StoreResult<void> start(Duration ttl) {
    if (process_ != nullptr) return {};
    const auto failed = [&](std::string_view reason) {
      return failure_at(program_.name, StoreError::Kind::not_sent, reason);
    };
    const auto process = context_.services.get<Fleet>().process_of(program_, context_, ttl);
    if (!process) return failed(process.error());
    const auto about = (*process)->about(kStart);
    if (!about) return failed(about.error());
    process_ = *process;
    return {};
  }

  Call request(const char* what, Json more = Json::object()) {
    more["do"] = what;
    more["client"] = number_;
    return {*process_, std::move(more)};
  }

  void cancel(const Call& call) { Call(*process_, {{"do", "cancel"}, {"of", call.id()}}); }

  static bool has(const Call& call, std::string_view outcome) {
    return call.answer() != nullptr && text_in(*call.answer(), "outcome") == outcome;
  }

  /// Why there is no outcome that counts.
  std::string why(const Call& call) const {
    const auto at = [&](std::string_view what) {
      return fmt::format("{}: {}", program_.name, process_->presentable(what));
    };
    if (!call.done()) return at("no answer in time");
    if (call.answer() == nullptr) return at(call.failure());
    const Json& answer = *call.answer();
    if (has(call, "failed")) return at(text_in(answer, "reason").value_or("it failed"));
    if (has(call, "unsupported")) return at("it does not support this");
    return at("its answer makes no sense: " +
              answer.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  /// One request, in which the library waits until `deadline`.
  AcquireResult ask_for(const AcquireRequest& request, TimePoint deadline) {
    AcquireResult result{.attempts = 1};
    if (const auto started = start(request.ttl); !started) {
      result.reason = started.error().message;
      return result;
    }
    const TimePoint asked_at = now();
    const Duration wait =
        deadline <= asked_at ? Duration::zero() : std::min(deadline - asked_at, kLongestWait);
    Call call = this->request("acquire", {{"key", request.key},
                                          {"ttl_ms", ceil_milliseconds(request.ttl)},
                                          {"wait_ms", milliseconds(wait)}});
    const bool stopped = await(call, wait, asked_at + wait, request.stop);
    judge(call, request, wait > Duration::zero(), stopped, result);
    return result;
  }

  /// Returns whether a stop came first.
  bool await(Call& call, Duration wait, TimePoint deadline, const std::stop_token& stop) {
    const TimePoint late = deadline + context_.options.command_timeout;
    // The end of a run lets a request go on that does not wait.
    const std::stop_token waiting = wait > Duration::zero() ? env_.waiting_stop(stop) : stop;
    const TimePoint waits_from = wait > kUntilWaiting ? now() + kUntilWaiting : late;
    bool done = call.await(waits_from, waiting);
    WaitResult waited = WaitResult::signalled;
    while (!done && waited == WaitResult::signalled && !waiting.stop_requested() && now() < late) {
      waited = env_.wait(&call.event(), late, stop);
      done = call.done();
    }
    if (done) return false;
    cancel(call);
    const bool stopped = waiting.stop_requested();
    call.await(now() + (stopped ? context_.options.after_stop : context_.options.command_timeout));
    return stopped;
  }

  void judge(const Call& call, const AcquireRequest& request, bool waited, bool stopped,
             AcquireResult& result) {
    using enum AcquireOutcome;
    if (has(call, "acquired")) {
      result.outcome = acquired;
      result.lease = lease_of(*call.answer(), request);
    } else if (has(call, "taken")) {
      result.outcome = stopped ? abandoned : waited ? timed_out : refused;
    } else if (stopped && !call.done()) {
      result.outcome = abandoned;  // a library that cannot cancel goes on waiting
    } else {
      const bool definite =
          has(call, "unsupported") ||
          (has(call, "failed") && flag_in(*call.answer(), "definite").value_or(false));
      result.outcome = definite && stopped        ? abandoned
                       : definite || !call.sent() ? failed
                                                  : unknown;
      result.reason = why(call);
    }
  }

  Lease lease_of(const Json& answer, const AcquireRequest& request) {
    const TimePoint granted_at = now();
    TimePoint valid_until = TimePoint::max();
    const auto valid_ms = number_in(answer, "valid_ms");
    if (valid_ms && *valid_ms >= 0 && *valid_ms < 1e3 * seconds(kLongestWait)) {
      valid_until = granted_at + std::chrono::duration_cast<Duration>(
                                     std::chrono::duration<double, std::milli>(*valid_ms));
    } else if (expires_) {
      valid_until = granted_at + request.ttl;
    }
    Lease lease{.key = std::string(request.key),
                .token = text_in(answer, "token").value_or(std::string()),
                .state = std::make_shared<LeaseState>(valid_until, granted_at)};
    const auto number = answer.find("fencing");
    if (number != answer.end() && number->is_number_unsigned()) {
      lease.fencing = number->get<std::uint64_t>();
    }
    return lease;
  }

  const Client& program_;
  const Context context_;
  Env& env_;
  const bool waits_, expires_;
  const int number_;
  Process* process_ = nullptr;
};

}  // namespace

std::unique_ptr<LockStrategy> make_lock(const Client& client, const Context& context, bool waits,
                                        bool expires) {
  return std::make_unique<Lock>(client, context, waits, expires);
}

}  // namespace lockbench::program
