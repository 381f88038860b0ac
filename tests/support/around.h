#pragma once

#include "strategies/registry.h"

namespace lockbench {

/// Forwards every call to the lock of that name.
class Around : public LockStrategy {
 public:
  Around(std::string_view name, const Context& context)
      : env_(context.env), inner_(make(*find_strategy(name), context)) {}

  StoreResult<void> connect() override { return inner_->connect(); }
  AcquireResult acquire(const AcquireRequest& request) override { return inner_->acquire(request); }
  ReleaseResult release(const Lease& lease) override { return inner_->release(lease); }
  RenewResult renew(const Lease& lease, Duration ttl) override { return inner_->renew(lease, ttl); }

 protected:
  Env& env() { return env_; }

 private:
  /// On the servers of the one around it; if it has none of its own store, on those of the lock's.
  static std::unique_ptr<LockStrategy> make(const Descriptor& lock, const Context& context) {
    return context.urls.empty() ? make_strategy(lock, context) : lock.make(context);
  }

  Env& env_;
  std::unique_ptr<LockStrategy> inner_;
};

/// The declarations common to all mutants.
inline Descriptor mutant(std::string_view name, std::string_view backend, const Traits& traits,
                         decltype(Descriptor::make) make) {
  return {.name = name,
          .backend = backend,
          .summary = "a correct lock with one defect",
          .acquire_commands = {"as the correct lock"},
          .release_commands = {"as the correct lock"},
          .source = "our own",
          .traits = traits,
          .make = std::move(make)};
}

template <class Mutant>
decltype(Descriptor::make) wrapping(std::string_view correct) {
  return [correct](const Context& context) { return std::make_unique<Mutant>(correct, context); };
}

/// Always grants the same fencing number.
struct SameNumber : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (result.lease) result.lease->fencing = 1;
    return result;
  }
};

/// Never looks at the clock: treats its lease as valid until it releases.
struct NeverDoubts : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (result.lease) result.lease->state = std::make_shared<LeaseState>(TimePoint::max());
    return result;
  }
};

}  // namespace lockbench
