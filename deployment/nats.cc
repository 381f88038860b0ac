#include "deployment/private_store.h"
#include "testbed/servers/kinds.h"

namespace lockbench::deployment {
namespace {

class NatsStore : public PrivateStore {
 public:
  NatsStore(testbed::Testbed& host, const StoreRequest& request)
      : PrivateStore("nats", request.setup != Setup::volatile_) {
    add(testbed::start_nats(host, {.max_clients = request.clients, .tls = host.tls()}));
  }
};

const PrivateStoreRegistration private_nats({
    .name = "nats",
    .program = testbed::kNats.name,
    .find_program = [] { return testbed::find_program(testbed::kNats); },
    .start = [](testbed::Testbed& host,
                const StoreRequest& request) -> std::unique_ptr<PrivateStore> {
      using Why = NotStarted::Why;
      if (request.setup == Setup::clocked) {
        throw NotOffered("NATS reads the clock without the C library, where it could be moved",
                         Why::unplayable);
      }
      if (request.setup == Setup::replicated) {
        throw NotOffered("lockbench starts one NATS, not a cluster of them", Why::unplayable);
      }
      if (request.setup == Setup::cramped) throw NotOffered("NATS evicts nothing");
      return std::make_unique<NatsStore>(host, request);
    },
});

}  // namespace
}  // namespace lockbench::deployment
