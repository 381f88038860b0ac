#include "strategies/redis/client/answers.h"
#include "strategies/redis/scripts.h"
#include "tests/support/flawed_lock.h"

namespace lockbench::test {
namespace {

/// Keeps deliberately leaked objects reachable, for the leak checker.
struct LeaksAConnection : Flawed {
  explicit LeaksAConnection(const Context& context) : Flawed(context) {
    static const std::unique_ptr<Env> env = make_system_env(0);
    static std::vector<std::unique_ptr<redis::Connection>> leaked;
    leaked.push_back(connection_to(context, *env));
    (void)leaked.back()->connect();
  }
};

struct SendsUndeclared : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    (void)redis().call({"EXISTS", request.key});
    return sound().acquire(request);
  }
};

struct SendsUnreported : Flawed {
  explicit SendsUnreported(const Context& context)
      : Flawed(context),
        unwatched_(make_system_env(0)),
        secret_(connection_to(context, *unwatched_)) {}
  AcquireResult acquire(const AcquireRequest& request) override {
    (void)secret_->call({"EXISTS", request.key});
    return sound().acquire(request);
  }
  std::unique_ptr<Env> unwatched_;
  std::unique_ptr<redis::Connection> secret_;
};

struct DoesNotFallBack : Flawed {
  using Flawed::Flawed;
  ReleaseResult release(const Lease& lease) override {
    return to_release_result(redis().call(
        redis::kFlag,
        {"EVALSHA", redis::scripts::release_if_token.sha1, "1", lease.key, lease.token}));
  }
};

class KeylessEnv : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;
  CommandFate before_command(const CommandInfo& command) override {
    CommandInfo keyless = command;
    keyless.key = {};
    return ForwardingEnv::before_command(keyless);
  }
};

/// The changed servers, options and Env of a lock. A base class, so
/// that they are there before the lock.
struct Misled {
  explicit Misled(const Context& context)
      : urls(context.urls), options(context.options), keyless(context.env) {}
  Context lead(const Context& context, Env& env) const {
    return {.endpoints = context.endpoints,
            .options = options,
            .env = env,
            .services = context.services,
            .client = context.client,
            .urls = urls,
            .waiting = context.waiting};
  }
  std::vector<std::string> urls;
  StrategyOptions options;
  KeylessEnv keyless;
};

struct MislabelsTheKey : private Misled, public Flawed {
  explicit MislabelsTheKey(const Context& context)
      : Misled(context), Flawed(lead(context, keyless)) {}
};

struct Patient : Misled {
  explicit Patient(const Context& context) : Misled(context) {
    options.command_timeout += std::chrono::seconds(10);
  }
};

struct WaitsTooLongForAnswers : private Patient, public Flawed {
  explicit WaitsTooLongForAnswers(const Context& context)
      : Patient(context), Flawed(lead(context, context.env)) {}
};

struct Databaseless : Misled {
  explicit Databaseless(const Context& context) : Misled(context) {
    std::string& url = urls.front();
    url = url.substr(0, url.find("?db="));
  }
};

struct AssumesTheFirstDatabase : private Databaseless, public Flawed {
  explicit AssumesTheFirstDatabase(const Context& context)
      : Databaseless(context), Flawed(lead(context, context.env)) {}
};

struct DoesNotTidyUp : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return set_nx_px(request, lease, lease.token);
  }
  StoreResult<bool> undo(const Lease&, const std::stop_token&) override { return false; }
};

/// Reports one outcome of an acquisition as another.
template <AcquireOutcome real, AcquireOutcome told>
struct Miscalls : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = sound().acquire(request);
    if (result.outcome == real) result.outcome = told;
    return result;
  }
};

/// SETNX, and an EXPIRE that was not sent: reports failed although the lock exists.
struct CallsHalfALockFailure : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const auto taken = redis().call({"SETNX", lease.key, lease.token}, request.stop);
    if (!taken) return tl::unexpected(taken.error());
    if (!taken->is_integer(1)) return false;
    const auto expires = redis().call({"EXPIRE", lease.key, "10"}, request.stop);
    if (!expires) return tl::unexpected(expires.error());
    lease.state = redis::valid_until(env().now());
    return true;
  }
};

struct CallsALostReleaseSuccess : Flawed {
  using Flawed::Flawed;
  ReleaseResult release(const Lease& lease) override {
    sound().release(lease);
    return {ReleaseOutcome::released, {}};
  }
};

struct NeverLooksForTheServer : Flawed {
  using Flawed::Flawed;
  StoreResult<void> connect() override { return {}; }
};

struct NeverReconnects : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    if (last_.outcome == AcquireOutcome::failed && last_.attempts > 0) return last_;
    last_ = sound().acquire(request);
    return last_;
  }
  AcquireResult last_;
};

struct NeedsAnAdministrator : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    if (const auto looked = redis().call({"CONFIG", "GET", "save"}); !looked) {
      return {.outcome = AcquireOutcome::failed, .reason = looked.error().message};
    }
    return sound().acquire(request);
  }
};

struct TellsThePassword : Flawed {
  explicit TellsThePassword(const Context& context)
      : Flawed(context), url_(context.endpoints.find("redis")->second.front()) {}
  StoreResult<void> connect() override {
    auto connected = sound().connect();
    if (!connected) connected.error().message += ", which is " + url_;
    return connected;
  }
  std::string url_;
};

}  // namespace

Factories locks_broken_towards_the_store() {
  using Outcome = AcquireOutcome;
  return {
      {Flaw::leaks_a_connection, construct<LeaksAConnection>},
      {Flaw::sends_undeclared, construct<SendsUndeclared>},
      {Flaw::sends_unreported, construct<SendsUnreported>},
      {Flaw::does_not_fall_back, construct<DoesNotFallBack>},
      {Flaw::mislabels_the_key, construct<MislabelsTheKey>},
      {Flaw::does_not_tidy_up, construct<DoesNotTidyUp>},
      {Flaw::calls_a_lost_answer_failure, construct<Miscalls<Outcome::unknown, Outcome::failed>>},
      {Flaw::calls_a_cut_refusal, construct<Miscalls<Outcome::failed, Outcome::refused>>},
      {Flaw::calls_half_a_lock_failure, construct<CallsHalfALockFailure>},
      {Flaw::calls_a_lost_release_success, construct<CallsALostReleaseSuccess>},
      {Flaw::never_looks_for_the_server, construct<NeverLooksForTheServer>},
      {Flaw::never_reconnects, construct<NeverReconnects>},
      {Flaw::waits_too_long_for_answers, construct<WaitsTooLongForAnswers>},
      {Flaw::needs_an_administrator, construct<NeedsAnAdministrator>},
      {Flaw::assumes_the_first_database, construct<AssumesTheFirstDatabase>},
      {Flaw::tells_the_password, construct<TellsThePassword>},
  };
}

}  // namespace lockbench::test
