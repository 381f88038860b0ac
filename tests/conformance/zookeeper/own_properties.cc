#include "tests/conformance/common/waiter.h"
#include "tests/conformance/zookeeper/zookeeper_test_store.h"

namespace lockbench::test {
namespace {

/// Timeout of a session that must not end during a test.
constexpr seconds kLongSession{30};

/// The session whose node has the lock.
std::int64_t owner_of(const std::string& key) {
  ZookeeperProbe& probe = shared_zookeeper().probe();
  const std::string node = node_of(key);
  const auto children = probe.children(node);
  return probe.look(children.empty() ? node : node + "/" + children.front()).owner;
}

/// The server ends the holder's session while another waits.
std::string end_of_the_session_is_known(const Descriptor& descriptor) {
  shared_store().clear();
  const std::uint16_t port = shared_store().server().port();
  const auto proxy = proxy_to(port);
  Bench distant(descriptor, url_of(proxy->port()));
  Bench bench(descriptor, url_of(port));
  const auto holder = distant.client();
  const Lease held = granted(holder->try_once(bench.key(), kLongSession));
  const std::int64_t session = owner_of(bench.key());
  Waiter waiter(bench.client(), bench.key());
  if (!waiter.waits()) return "it did not wait";
  // Otherwise it would reconnect before its session has ended.
  proxy->lead_to(closed_port());
  ZookeeperProbe::end_session(port, session);
  proxy->lead_to(port);
  const Lease next = granted(waiter.join(), "the next: ");
  if (descriptor.traits.fencing && *next.fencing <= *held.fencing) {
    return "fencing numbers do not grow";
  }
  if (!comes_true([&] { return held.state->lost_at().has_value(); })) {
    return "the lease does not know that it is lost";
  }
  const ReleaseOutcome released = holder->release(held);
  if (released != ReleaseOutcome::not_owner)
    return fmt::format("release gave {}", name_of(released));
  if (!bench.is_held()) return "another's lock was freed";
  waiter.client().release(next);
  (void)granted(holder->try_once(bench.key(), kLongSession), "in a new session: ");
  return {};
}

/// The connections break, the sessions do not.
std::string a_broken_connection_costs_nothing(const Descriptor& descriptor) {
  shared_store().clear();
  const auto proxy = proxy_to(shared_store().server().port());
  HeldBench bench(kLongSession, descriptor, url_of(proxy->port()));
  Waiter waiter(bench.client(), bench.key());
  if (!waiter.waits()) return "it did not wait";
  const auto nodes = shared_zookeeper().probe().children(node_of(bench.key()));
  proxy->cut();
  if (!eventually([&] { return proxy->counts().accepted >= 4; })) return "they do not reconnect";
  if (!bench.held.state->valid_at(bench.holder->now()))
    return "the lease is lost with its connection";
  bench.holder->give_back(bench.held);
  const Lease next = granted(waiter.join(), "the next: ");
  const bool same = nodes.empty() || std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
                      return next.token == node_of(bench.key()) + "/" + node;
                    });
  return same ? "" : "the place in the queue was lost";
}

/// Like a stopped process: its belief ends first, then its session, and then another client gets
/// the lock.
std::string belief_ends_before_the_session(const Descriptor& descriptor) {
  constexpr milliseconds kTtl{1500};
  shared_store().clear();
  const auto proxy = proxy_to(shared_store().server().port());
  Bench bench(descriptor, url_of(proxy->port()));
  Bench reachable(descriptor, url_of(shared_store().server().port()));
  const auto holder = bench.client(), contender = reachable.client();
  const Lease held = granted(holder->try_once(bench.key(), kTtl));
  const LeaseState& state = *held.state;
  if (state.valid_until() > holder->now() + kTtl) return "valid for longer than the session lasts";
  const TimePoint first_end = state.valid_until();
  if (!comes_true([&] { return state.valid_until() > first_end; })) {
    return "held by a live client, its validity ends";
  }
  proxy->black_hole();
  const AcquireResult next = contender->acquire(bench.key(), patience(), kTtl);
  const TimePoint granted_at = contender->now();
  if (!next.lease) return "the next: " + unexpected(next, AcquireOutcome::acquired);
  if (state.valid_until() > granted_at) {
    return fmt::format("believes for {:.1f} ms longer than it is true",
                       in_ms(state.valid_until() - granted_at));
  }
  proxy->heal();
  if (!eventually([&] { return state.lost_at().has_value(); })) return "the loss is never known";
  const ReleaseOutcome released = holder->release(held);
  if (released != ReleaseOutcome::not_owner)
    return fmt::format("release gave {}", name_of(released));
  const ReleaseOutcome own = contender->release(*next.lease);
  return own == ReleaseOutcome::released ? "" : "another's lock was freed";
}

/// Two foreign nodes are between holder and waiter, with the first and the last name by the
/// alphabet; the nearer one dies.
std::string dead_contenders_change_no_turns(const Descriptor& descriptor) {
  Bench bench(descriptor);
  ZookeeperProbe& probe = shared_zookeeper().probe();
  const auto holder = bench.client();
  const Lease held = granted(holder->try_once(bench.key()));
  const std::string last = probe.make_contender(node_of(bench.key()) + "/~-");
  const std::string first = probe.make_contender(node_of(bench.key()) + "/!-");
  holder->release(held);
  Waiter waiter(bench.client(), bench.key());
  if (!comes_true([&] { return waiter.has_sent("getData"); })) return "it did not wait";
  probe.remove(first);
  // It has looked again and found the other one.
  const auto looked = [&] { return waiter.has_sent("getData") || waiter.is_done(); };
  if (!comes_true(looked)) return "it does not look round";
  if (waiter.is_done()) return "granted with one ahead of it";
  probe.remove(last);
  const AcquireResult& next = waiter.join();
  return next.lease ? "" : unexpected(next, AcquireOutcome::acquired);
}

/// The creation of a node was not answered and could not be undone, and the session continues
/// because of another lock. Then the client acquires a third one, releases it, or releases the
/// other.
std::string unanswered_node_is_given_up_later(const Descriptor& descriptor) {
  enum class Then { acquires, releases, releases_the_last };
  for (const Then then : {Then::acquires, Then::releases, Then::releases_the_last}) {
    Bench bench(descriptor);
    const auto client = bench.client(), stranger = bench.client();
    const std::string other = bench.key() + "-other", third = bench.key() + "-third";
    std::vector<Lease> held{granted(client->try_once(other))};
    if (then == Then::releases) held.push_back(granted(client->try_once(third)));
    warm_up(*client, bench.key());
    client->faults().drop_answer(1);
    client->faults().drop_command(3);
    const AcquireResult lost = client->try_once(bench.key());
    if (lost.outcome != AcquireOutcome::unknown) return unexpected(lost, AcquireOutcome::unknown);
    if (!held.front().state->valid_at(client->now())) return "it cost the other lock";
    if (stranger->try_once(bench.key()).lease) return "nothing was left, so this shows nothing";
    if (then == Then::acquires) {
      client->try_once(third);
    } else if (client->release(held.back()) != ReleaseOutcome::released) {
      return "the other lock is lost";
    }
    const Lease free = granted(stranger->try_once(bench.key()), "an orphan: ");
    if (then == Then::releases_the_last) continue;
    if (client->release(held.front()) != ReleaseOutcome::released) return "the other lock is lost";
  }
  return {};
}

/// The answer took longer than the session timeout.
std::string late_grant_is_not_handed_out(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  // By its own clock, so that no ping in between shows that the session continues.
  client->faults().next_answer_is_late(milliseconds(400));
  const AcquireResult late = client->try_once(bench.key(), milliseconds(300));
  if (late.lease && !late.lease->state->valid_at(client->faults().now())) {
    return "the lease is past its validity when it is handed out";
  }
  (void)granted(client->try_once(bench.key(), kLongSession), "afterwards: ");
  return {};
}

/// Each waiter watches the node ahead of it.
bool is_queue(const Descriptor& descriptor) {
  return is_fair(descriptor) && !descriptor.traits.permits;
}

}  // namespace

std::vector<Property> zookeeper_properties() {
  return {{"EndOfTheSessionIsKnown", always, end_of_the_session_is_known},
          {"ABrokenConnectionCostsNothing", always, a_broken_connection_costs_nothing},
          {"BeliefEndsBeforeTheSession", always, belief_ends_before_the_session},
          {"DeadContendersChangeNoTurns", is_queue, dead_contenders_change_no_turns},
          {"UnansweredNodeIsGivenUpLater", always, unanswered_node_is_given_up_later},
          {"LateGrantIsNotHandedOut", always, late_grant_is_not_handed_out}};
}

}  // namespace lockbench::test
