#include "strategies/nats/client/bucket.h"
#include "strategies/observed_lease.h"
#include "strategies/registry.h"

namespace lockbench::nats {
namespace {

/// Both of its users make one for each client, and one for its renewals.
ConditionalLease::MakeStore buckets(const Context& context, bool expires) {
  return [endpoint = endpoints_of(context, parse_endpoint).front(), expires](
             const Timeouts& timeouts, Env& env) {
    return std::make_unique<Bucket>(endpoint, timeouts, env, expires);
  };
}

/// Its fencing number is the revision of the key that the grant made.
class NatsKv : public ConditionalLease {
 public:
  explicit NatsKv(const Context& context) : ConditionalLease(context, buckets(context, true)) {}

 protected:
  StoreResult<bool> take(const AcquireRequest& request, Lease& lease) override {
    auto granted = ConditionalLease::take(request, lease);
    if (granted && *granted) lease.fencing = dynamic_cast<Bucket&>(store()).revision();
    return granted;
  }
};

const Registration nats_kv(with_known_hazards({
    .name = "nats-kv",
    .backend = "nats",
    .summary = "A key in a bucket with a TTL: written at its expected revision, deleted likewise",
    .acquire_commands = {"STREAM.MSG.GET key", "HPUB key token if revision"},
    .release_commands = {"STREAM.MSG.GET key", "HPUB key DEL if revision"},
    .source =
        "Choria's leader election on a bucket (providers/election/streams); nats.go's KeyValue",
    .typical = true,
    .libraries = {{"Go", "nats.go KeyValue",
                   "bucket with TTL = {ttl}; Create, Update, "
                   "Delete(LastRevision)"},
                  {"Go", "choria-io/go-choria providers/election", "bucket with TTL = {ttl}",
                   Reentry::none, true}},
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .kept_longer = kKeptLonger,
               .fencing = true,
               .renewable = true},
    .make = construct<NatsKv>,
}));

class NatsObservedLease : public ObservedLease {
 public:
  explicit NatsObservedLease(const Context& context)
      : ObservedLease(context, buckets(context, false)) {}
};

const Registration nats_observed_lease(with_known_hazards({
    .name = "nats-observed-lease",
    .backend = "nats",
    .summary = "A record in a bucket without TTL: taken over after a TTL without a change, by the "
               "candidate's own clock",
    .acquire_commands = {"STREAM.MSG.GET key", "HPUB key record if revision"},
    .release_commands = {"STREAM.MSG.GET key", "HPUB key record if revision"},
    .renew_commands = {"STREAM.MSG.GET key", "HPUB key record if revision"},
    .source = "client-go's leaderelection, on a key",
    .libraries = {{"Go", "k8s.io/client-go/tools/leaderelection (on a Lease of Kubernetes)",
                   "LeaseDuration = {ttl}, RenewDeadline, RetryPeriod", Reentry::none, true}},
    .traits = observed_traits(),
    .make = construct<NatsObservedLease>,
}));

}  // namespace
}  // namespace lockbench::nats
