#include <algorithm>

#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

constexpr std::string_view kReaders = ":readers", kWriters = ":writers";

/// How long after each attempt a waiting writer keeps new readers out. Long enough for a late
/// attempt.
Duration kept_out_for(const Context& context) {
  if (!context.options.prefer_writers) return {};
  return std::max<Duration>(3 * context.waiting.max, std::chrono::milliseconds(300));
}

/// One writer or several readers (AcquireRequest::mode). Each has its own TTL and its own renewal,
/// so a dead reader delays others by no more than its TTL. Nobody queues: readers that come and go
/// can keep a writer out for ever, unless writers are preferred. Then a waiting writer keeps new
/// readers out as long as it lives.
class ReadWrite : public TokenLock {
 public:
  explicit ReadWrite(const Context& context)
      : TokenLock(context), keeps_out_for_(kept_out_for(context)) {}

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    lease.mode = request.mode;
    const bool may_wait = request.deadline > env().now();
    return call(kNilOrTimeLeft, request.mode == Mode::shared ? "read" : "write", lease,
                request.stop, std::to_string(ceil_milliseconds(request.ttl)),
                may_wait ? keeps_out_for_ : Duration::zero());
  }

 protected:
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    return call(kFlag, "release", lease, stop);
  }
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override {
    return call(kFlag, "leave", lease, stop);
  }
  void withdraw(const Lease& lease, const std::stop_token& stop) override {
    if (lease.mode == Mode::exclusive && keeps_out_for_ > Duration::zero()) (void)undo(lease, stop);
  }
  std::optional<RenewalProtocol> renewal_protocol() const override {
    return RenewalProtocol{.script = &scripts::read_write};
  }

 private:
  template <class T>
  StoreResult<T> call(const Form<T>& form, std::string_view verb, const Lease& lease,
                      const std::stop_token& stop, std::string_view ttl = "0",
                      Duration keeps_out_for = {}) {
    return redis().call(form, scripts::read_write, {lease.key},
                        {lease.token, ttl, verb, std::to_string(ceil_milliseconds(keeps_out_for))},
                        stop);
  }

  const Duration keeps_out_for_;
};

const Registration redis_read_write(on_redis({
    .name = "redis-read-write",
    .summary = "One writer or several readers, each with a TTL of its own, renewed; writers can be "
               "preferred",
    .acquire_commands = {"EVALSHA read_write key token ttl write|read milliseconds"},
    .release_commands = {"EVALSHA read_write key token 0 release 0"},
    .renew_commands = {"EVALSHA read_write key token ttl"},
    .source = "lockbench's own design",
    .libraries = {{"Java", "Redisson getReadWriteLock (with other keys)",
                   "lockWatchdogTimeout = {ttl}", Reentry::counted, true}},
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .renews = RenewalTiming{},
               .renewable = true,
               .shared = true},
    .make = construct<ReadWrite>,
    .key_suffixes = {"", kReaders, kWriters},
}));

}  // namespace
}  // namespace lockbench::redis
