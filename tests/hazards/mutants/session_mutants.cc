// Session locks with one defect, each wrapping a correct one.

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
          .summary = "a correct lock with one defect",
          .acquire_commands = {"as the wrapped lock"},
          .release_commands = {"as the wrapped lock"},
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
