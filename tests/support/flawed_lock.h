#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "strategies/registry.h"
#include "tests/support/token_mutants.h"

namespace lockbench::test {

/// The textbook lock; every broken lock is this one plus a flaw.
inline const Descriptor& sound_lock() {
  const Descriptor* sound = find_strategy("redis-set-nx-lua");
  if (sound == nullptr) throw std::logic_error("the sound lock to break is missing");
  return *sound;
}

/// A connection to the lock's server. Throws std::invalid_argument without an endpoint.
inline std::unique_ptr<redis::Connection> connection_to(const Context& context, Env& env) {
  const auto endpoint = redis::parse_endpoint(context.endpoints.find("redis")->second.front());
  if (!endpoint) throw std::invalid_argument(endpoint.error());
  return context.services.get_or_make<redis::ConnectionFactory>(redis::make_connection_factory)
      .make(*endpoint, context.options.timeouts(), env);
}

/// Reports commands without their keys.
class KeylessEnv : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;
  CommandFate before_command(const CommandInfo& command) override {
    CommandInfo keyless = command;
    keyless.key = {};
    return ForwardingEnv::before_command(keyless);
  }
};

class Flawed;

/// Overrides of the sound lock's behaviour; empty members use the sound one's. Each lock has its
/// own copy.
struct Behaviour {
  std::function<StoreResult<void>(Flawed&)> connect{};
  std::function<AcquireResult(Flawed&, const AcquireRequest&)> acquire{};
  std::function<ReleaseResult(Flawed&, const Lease&)> release{};
  std::function<RenewResult(Flawed&, const Lease&, Duration)> renew{};
  /// Changes the arguments that the sound lock is made with.
  std::function<void(Context&, StrategyOptions&)> mislead{};
  bool keyless = false;  ///< reports commands without their keys
};

/// A sound lock with this behaviour. Has its own connection for commands that the sound lock would
/// not send.
class Flawed : public LockStrategy {
 public:
  Flawed(const Context& context, Behaviour behaviour)
      : behaviour_(std::move(behaviour)),
        context_(context),
        options_(context.options),
        keyless_(context.env),
        sound_(sound_lock().make(misled())),
        redis_(connection_to(context, context.env)) {}

  StoreResult<void> connect() override {
    return behaviour_.connect ? behaviour_.connect(*this) : sound_->connect();
  }
  AcquireResult acquire(const AcquireRequest& request) override {
    return behaviour_.acquire ? behaviour_.acquire(*this, request) : sound_->acquire(request);
  }
  ReleaseResult release(const Lease& lease) override {
    return behaviour_.release ? behaviour_.release(*this, lease) : sound_->release(lease);
  }
  RenewResult renew(const Lease& lease, Duration ttl) override {
    return behaviour_.renew ? behaviour_.renew(*this, lease, ttl) : sound_->renew(lease, ttl);
  }

  LockStrategy& sound() { return *sound_; }
  redis::Connection& redis() { return *redis_; }
  Env& env() { return context_.env; }
  const Context& context() const { return context_; }
  /// Acquires the sound lock without waiting.
  AcquireResult try_once(AcquireRequest request) {
    request.deadline = env().now();
    return sound_->acquire(request);
  }

 private:
  Context misled() {
    Context made{.endpoints = context_.endpoints,
                 .options = options_,
                 .env = behaviour_.keyless ? keyless_ : context_.env,
                 .services = context_.services,
                 .client = context_.client,
                 .urls = context_.urls,
                 .waiting = context_.waiting,
                 .renewing = context_.renewing};
    if (behaviour_.mislead) behaviour_.mislead(made, options_);
    return made;
  }

  Behaviour behaviour_;
  const Context context_;
  StrategyOptions options_;
  KeylessEnv keyless_;
  std::unique_ptr<LockStrategy> sound_;
  std::unique_ptr<redis::Connection> redis_;
};

/// A lease with no lock behind it in the store.
inline AcquireResult granted(const AcquireRequest& request, std::string token,
                             TimePoint valid_until) {
  return {.outcome = AcquireOutcome::acquired,
          .lease = Lease{.key = std::string(request.key),
                         .token = std::move(token),
                         .mode = request.mode,
                         .state = std::make_shared<LeaseState>(valid_until)}};
}

}  // namespace lockbench::test
