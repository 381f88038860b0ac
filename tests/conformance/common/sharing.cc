#include <thread>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"

namespace lockbench::test {
namespace {

AcquireResult ask(Client& client, const std::string& key, Mode mode, Duration patience = {},
                  Duration ttl = kLongTtl) {
  return client.lock().acquire(
      {.key = key, .ttl = ttl, .deadline = client.now() + patience, .mode = mode, .stop = {}});
}

std::string sharers_are_together_and_others_alone(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto one = bench.client();
  const auto two = bench.client();
  const auto alone = bench.client();
  const AcquireResult first = ask(*one, bench.key(), Mode::shared);
  const AcquireResult second = ask(*two, bench.key(), Mode::shared);
  if (!first.lease) return unexpected(first, AcquireOutcome::acquired);
  if (!second.lease) return "beside a sharer: " + unexpected(second, AcquireOutcome::acquired);
  const auto is_refused = [&](Client& client, Mode mode) {
    return ask(client, bench.key(), mode).outcome == AcquireOutcome::refused;
  };
  if (!is_refused(*alone, Mode::exclusive)) return "granted beside two sharers";
  one->release(*first.lease);
  if (!is_refused(*alone, Mode::exclusive)) return "granted beside a sharer";
  two->release(*second.lease);
  const AcquireResult last = ask(*alone, bench.key(), Mode::exclusive);
  if (!last.lease) return "after all sharers: " + unexpected(last, AcquireOutcome::acquired);
  if (!is_refused(*one, Mode::shared)) return "a sharer was let in to one who is alone";
  const bool modes = first.lease->mode == Mode::shared && last.lease->mode == Mode::exclusive;
  alone->release(*last.lease);
  return modes ? "" : "a lease has the wrong mode";
}

std::string sharers_do_not_overtake(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto sharer = bench.client();
  const auto waiter = bench.client();
  const auto late = bench.client();
  const AcquireResult held = ask(*sharer, bench.key(), Mode::shared);
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  AcquireResult gained;
  std::thread waiting([&] { gained = ask(*waiter, bench.key(), Mode::exclusive, patience()); });
  bool waits = waiter->trace().await_waiting();
  if (waits_at_the_server(descriptor)) {
    waits = comes_true([] { return shared_store().waiting() == 1; });
  }
  const AcquireResult overtaker = ask(*late, bench.key(), Mode::shared);
  if (overtaker.lease) late->release(*overtaker.lease);
  sharer->release(*held.lease);
  waiting.join();
  if (!waits) return "it did not wait";
  if (overtaker.lease) return "a late sharer overtook one who waits to be alone";
  if (!gained.lease) return unexpected(gained, AcquireOutcome::acquired);
  waiter->release(*gained.lease);
  return {};
}

/// One that died is waited for until the end of its own TTL, whoever shared the lock later.
std::string sharers_expire_by_themselves(const Descriptor& descriptor) {
  Bench bench(descriptor, unrenewed());
  const auto dead = bench.client();
  const auto later = bench.client();
  const auto alone = bench.client();
  const AcquireResult lost = ask(*dead, bench.key(), Mode::shared, {}, kShortTtl);
  if (!lost.lease) return unexpected(lost, AcquireOutcome::acquired);
  const AcquireResult held = ask(*later, bench.key(), Mode::shared);
  if (!held.lease) return "beside a sharer: " + unexpected(held, AcquireOutcome::acquired);
  later->release(*held.lease);
  const AcquireResult gained = ask(*alone, bench.key(), Mode::exclusive, patience());
  if (!gained.lease) return "after its TTL: " + unexpected(gained, AcquireOutcome::acquired);
  const bool too_early = alone->now() < lost.lease->state->valid_until();
  alone->release(*gained.lease);
  return too_early ? "granted while a sharer's lease was valid" : "";
}

bool can_share(const Descriptor& descriptor) { return descriptor.traits.shared; }
bool can_share_and_expires(const Descriptor& descriptor) {
  return can_share(descriptor) && descriptor.traits.expiry == Expiry::ttl;
}
bool can_share_fairly(const Descriptor& descriptor) {
  return can_share(descriptor) && descriptor.traits.fair;
}

}  // namespace

std::vector<Property> sharing_properties() {
  return {{"SharersAreTogetherAndOthersAlone", can_share, sharers_are_together_and_others_alone},
          {"SharersDoNotOvertake", can_share_fairly, sharers_do_not_overtake},
          {"SharersExpireByThemselves", can_share_and_expires, sharers_expire_by_themselves}};
}

}  // namespace lockbench::test
