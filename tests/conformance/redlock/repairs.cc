#include "tests/conformance/common/bench.h"
#include "tests/conformance/redlock/own_properties.h"
#include "tests/conformance/redlock/quorum_store.h"

namespace lockbench::test {
namespace {

std::string minority_is_not_enough_to_renew(const Descriptor& descriptor) {
  Bench bench(descriptor, renewed_every(milliseconds(20)));
  auto& tested = dynamic_cast<QuorumStore&>(shared_store());
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  for (const std::size_t node : {0U, 1U, 2U}) tested.probe(node).remove({bench.key()});
  if (!eventually([&] { return held.lease->state->lost_at().has_value(); })) {
    return "the lease does not know that it is lost";
  }
  const RenewOutcome outcome = holder->lock().renew(*held.lease, seconds(1)).outcome;
  if (outcome != RenewOutcome::not_owner) return fmt::format("renew gave {}", name_of(outcome));
  const ReleaseOutcome released = holder->release(*held.lease);
  return released == ReleaseOutcome::not_owner ? std::string()
                                               : fmt::format("release gave {}", name_of(released));
}

}  // namespace

std::vector<Property> repair_properties() {
  return {{"MinorityIsNotEnoughToRenew", is_quorum, minority_is_not_enough_to_renew}};
}

}  // namespace lockbench::test
