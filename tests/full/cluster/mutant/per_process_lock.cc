// A lock that declares exclusion but keeps it only among clients of one process.

#include <fmt/format.h>
#include <unistd.h>

#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

class PerProcess : public LockStrategy {
 public:
  explicit PerProcess(const Context& context)
      : inner_(make_strategy(*find_strategy("redis-set-nx-lua"), context)) {}

  StoreResult<void> connect() override { return inner_->connect(); }
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireRequest own = request;
    key_ = fmt::format("{}:{}", request.key, getpid());
    own.key = key_;
    return inner_->acquire(own);
  }
  ReleaseResult release(const Lease& lease) override { return inner_->release(lease); }
  RenewResult renew(const Lease& lease, Duration ttl) override { return inner_->renew(lease, ttl); }

 private:
  std::unique_ptr<LockStrategy> inner_;
  std::string key_;
};

const Registration registration(Descriptor{
    .name = "mutant-per-process",
    .backend = "redis",
    .summary = "excludes the clients of one process only",
    .acquire_commands = {"SET key token NX PX ttl"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "our own",
    .traits = {.expiry = Expiry::ttl, .release_check = OwnerCheck::atomic, .waiting_choices = {}},
    .make = [](const Context& context) { return std::make_unique<PerProcess>(context); },
});

}  // namespace
}  // namespace lockbench::redis
