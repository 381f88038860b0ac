#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"

namespace lockbench::test {
namespace {

int servers() { return static_cast<int>(shared_store().servers().size()); }

/// How many commands an acquisition takes that nobody contends: to each server of a quorum.
int commands_to_acquire(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  client->trace().take();
  client->try_once(bench.key());
  return static_cast<int>(client->trace().take().size()) / servers();
}

std::string expect_no_lease(const AcquireResult& result, AcquireOutcome wanted) {
  if (result.outcome != wanted) return unexpected(result, wanted);
  if (result.lease) return "a lease although nothing was acquired";
  for (const std::string& endpoint : shared_endpoints()) {
    if (result.reason.find(endpoint) != std::string::npos) return {};
  }
  return fmt::format("the reason \"{}\" names no endpoint", result.reason);
}

/// After a lost answer the lock is neither held nor free; a strategy that can tell its own lock
/// frees it, one that cannot must say that it gets stuck.
std::string lost_answer_is_unknown(const Descriptor& descriptor) {
  const bool sticks = has_hazard(descriptor, "lost-answer-acquire", HazardOutcome::stuck);
  const int commands = commands_to_acquire(descriptor);
  if (commands == 0) return "no command was reported";
  // A quorum does not care about one server; and what a majority did not wait for in the warm-up's
  // acquisition and release may be answered only now.
  const int lost = is_quorum(descriptor) ? 3 * servers() : 1;
  for (int n = 1; n <= commands; ++n) {
    Bench bench(descriptor);
    const auto client = bench.client();
    warm_up(*client, bench.key());
    client->faults().drop_answer((n - 1) * servers() + 1, lost);
    const AcquireResult result = client->try_once(bench.key());
    std::string wrong = expect_no_lease(result, AcquireOutcome::unknown);
    if (!wrong.empty()) return fmt::format("answer {} lost: {}", n, wrong);
    if (sticks && !bench.is_held()) return "declared to get stuck, but the lock is free";
    if (!sticks && !bench.becomes_free()) {
      return fmt::format("answer {} lost: the lock stays held by nobody", n);
    }
  }
  return {};
}

/// A command that never left took no effect, nor may those sent with it.
std::string unsent_command_is_a_failure(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  client->faults().drop_command(1, servers());
  const AcquireResult result = client->try_once(bench.key());
  std::string wrong = expect_no_lease(result, AcquireOutcome::failed);
  if (!wrong.empty()) return wrong;
  if (!shared_store().keys().empty()) return "failed, yet something took effect";
  // The same instance goes on.
  const AcquireResult next = client->try_once(bench.key());
  return next.lease ? std::string() : "afterwards: " + unexpected(next, AcquireOutcome::acquired);
}

bool takes_several_commands(const Descriptor& descriptor) {
  return has_store(descriptor) && descriptor.acquire_commands.size() > 1;
}

/// Anywhere in an acquisition: what was sent before may have taken effect.
std::string cut_acquisition_is_no_grant(const Descriptor& descriptor) {
  const int commands = commands_to_acquire(descriptor);
  if (commands == 0) return "no command was reported";
  for (int n = 1; n <= commands; ++n) {
    Bench bench(descriptor);
    const auto client = bench.client();
    warm_up(*client, bench.key());
    client->faults().drop_command((n - 1) * servers() + 1, servers());
    const AcquireResult result = client->try_once(bench.key());
    // A server may have yet to see that a session's connection is gone.
    const bool ends = descriptor.traits.expiry == Expiry::session;
    const bool free = ends ? bench.becomes_free() : !bench.is_held();
    const AcquireOutcome wanted = free ? AcquireOutcome::failed : AcquireOutcome::unknown;
    std::string wrong = expect_no_lease(result, wanted);
    if (!wrong.empty()) return fmt::format("command {} cut: {}", n, wrong);
  }
  return {};
}

std::string lost_release_is_a_failure(const Descriptor& descriptor) {
  for (const bool sent : {false, true}) {
    Bench bench(descriptor);
    const auto client = bench.client();
    const AcquireResult held = client->try_once(bench.key());
    if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
    sent ? client->faults().drop_answer(1, servers()) : client->faults().drop_command(1, servers());
    const ReleaseResult released = client->lock().release(*held.lease);
    if (released.outcome != ReleaseOutcome::failed) {
      return fmt::format("release gave {}, not failed", name_of(released.outcome));
    }
    if (released.reason.empty()) return "a failed release without a reason";
    // A lock that lives in a session ends with the connection, the release with it.
    if (descriptor.traits.expiry == Expiry::session) continue;
    if (!sent && !bench.is_held()) return "the release never left, yet the lock is free";
  }
  return {};
}

}  // namespace

std::vector<Property> lost_command_properties() {
  return {{"LostAnswerIsUnknown", has_store, lost_answer_is_unknown},
          {"UnsentCommandIsAFailure", has_store, unsent_command_is_a_failure},
          {"CutAcquisitionIsNoGrant", takes_several_commands, cut_acquisition_is_no_grant},
          {"LostReleaseIsAFailure", has_store, lost_release_is_a_failure}};
}

}  // namespace lockbench::test
