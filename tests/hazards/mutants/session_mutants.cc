// Locks on sessions with one thing wrong, each round a sound one.

#include "tests/hazards/mutants/around.h"

namespace lockbench {
namespace {

class SameNumber : public Around {
 public:
  using Around::Around;

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (result.lease) result.lease->fencing = 1;
    return result;
  }
};

Descriptor described(std::string_view name, std::string_view backend, std::string_view around) {
  return {.name = name,
          .backend = backend,
          .summary = "a sound lock with one thing wrong",
          .acquire_commands = {"as the lock that it goes round"},
          .release_commands = {"likewise"},
          .source = "our own",
          .traits = {.expiry = Expiry::session,
                     .release_check = OwnerCheck::atomic,
                     .fencing = true,
                     .waiting_choices = {}},
          .hazards = {},
          .make = [around](const Context& context) {
            return std::make_unique<SameNumber>(around, context);
          }};
}

const Registration zookeeper(described("test-zookeeper-same-number", "zookeeper", "zookeeper"));
const Registration etcd(described("test-etcd-same-number", "etcd", "etcd"));
const Registration postgres(described("test-postgres-same-number", "postgres",
                                      "postgres-advisory"));

}  // namespace
}  // namespace lockbench
