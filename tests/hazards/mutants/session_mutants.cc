// Session locks with one defect, each wrapping a correct one.

#include "tests/support/around.h"

namespace lockbench {
namespace {

/// Its fencing numbers decrease from one client to the next.
struct CountsDown : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    constexpr std::uint64_t kFirst = 1'000'000'000'000;
    AcquireResult result = Around::acquire(request);
    if (result.lease) result.lease->fencing = kFirst - result.lease->fencing.value_or(0);
    return result;
  }
};

/// Ends long after the TTL that was asked for.
struct Lingers : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    constexpr int kTimes = 40;
    AcquireRequest longer = request;
    longer.ttl *= kTimes;
    return Around::acquire(longer);
  }
};

/// Releases at once, and goes on with the lease.
struct HoldsNothing : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (result.lease) Around::release(*result.lease);
    return result;
  }
};

struct OwnOptions {
  explicit OwnOptions(const StrategyOptions& asked) : own(asked) { own.lock_delay = {}; }
  StrategyOptions own;
};

/// A lock without lock-delay.
class Hasty : private OwnOptions, public Around {
 public:
  Hasty(std::string_view around, const Context& context)
      : OwnOptions(context.options),
        Around(around, {.endpoints = context.endpoints,
                        .options = own,
                        .env = context.env,
                        .services = context.services,
                        .client = context.client}) {}
};

template <class Mutant>
Descriptor described(std::string_view name, std::string_view backend, std::string_view around) {
  Descriptor made = mutant(name, backend,
                           {.expiry = Expiry::session,
                            .release_check = OwnerCheck::atomic,
                            .lock_delay = true,
                            .fencing = true,
                            .waiting_choices = {}},
                           wrapping<Mutant>(around));
  if (backend == "etcd") made.hazards = {{"member-isolated", HazardOutcome::known_loss}};
  return made;
}

const Registration zookeeper(described<SameNumber>("test-zookeeper-same-number", "zookeeper",
                                                   "zookeeper"));
const Registration etcd(described<SameNumber>("test-etcd-same-number", "etcd", "etcd"));
const Registration postgres(described<SameNumber>("test-postgres-same-number", "postgres",
                                                  "postgres-advisory"));
const Registration counts_down(described<CountsDown>("test-etcd-counts-down", "etcd", "etcd"));
const Registration trusting(described<NeverDoubts>("test-etcd-never-doubts", "etcd", "etcd"));
const Registration idle(described<HoldsNothing>("test-etcd-holds-nothing", "etcd", "etcd"));
const Registration lingering(described<Lingers>("test-etcd-lingers", "etcd", "etcd"));
const Registration long_lease(with_known_hazards(
    mutant("test-long-lease", "postgres",
           {.expiry = Expiry::ttl, .release_check = OwnerCheck::atomic, .waiting_choices = {}},
           wrapping<Lingers>("postgres-lease"))));
const Registration hasty(described<Hasty>("test-chubby-hasty", "etcd", "chubby"));

}  // namespace
}  // namespace lockbench
