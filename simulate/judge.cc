#include "simulate/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "strategies/words.h"

namespace lockbench::simulate {
namespace {

using namespace std::string_view_literals;

constexpr std::array kOracles{"overlap"sv,     "lost update"sv,  "fencing order"sv, "liveness"sv,
                              "left behind"sv, "late renewal"sv, "lost lease"sv};

template <class T>
constexpr unsigned bit(T value) {
  return 1U << static_cast<unsigned>(value);
}
template <class... T>
constexpr unsigned bits(T... values) {
  return (bit(values) | ...);
}

/// For so long after a fault, messages may still be under way.
constexpr Duration kSettling = std::chrono::seconds(1);

/// A session may outlive its TTL by this: etcd rounds TTLs up, looks for ended leases twice a
/// second and counts them anew after an election; and Chubby's guards stay for a lock-delay.
constexpr Duration kSessionsLonger = std::chrono::seconds(3);

/// Not a fault: a lease has ended before its release had.
constexpr unsigned kOverran = 1U << 31;

/// The commands with which a renewal reads what it renews.
constexpr auto kReads = std::to_array<std::string_view>({"GET", "gets", "Range"});

constexpr std::string_view kRestartEmpty = "store-restart-empty";

/// The faults with which a scenario of hazards can happen; scenarios that another one implies are
/// left out.
struct Occasion {
  std::string_view scenario;
  unsigned faults;
};
constexpr auto kOccasions = [] {
  using enum Disturbance;
  constexpr unsigned kForgets = bits(store_kill, failover, eviction);
  // Answers get lost.
  constexpr unsigned kUnanswered = bits(store_kill, store_freeze, failover, partition, partition_to,
                                        partition_from, delay, client_pause, client_kill);
  return std::array{
      Occasion{kRestartEmpty, kForgets},
      Occasion{"redlock-node-restart-empty", kForgets},
      Occasion{"failover", bit(failover)},
      Occasion{"failover-fenced", bit(failover)},
      Occasion{"failover-wrong-replica", bit(failover)},
      Occasion{"redis-eviction-lru", bit(eviction)},
      Occasion{"store-clock-jump", bit(clock_step)},
      Occasion{"redlock-clock-jump", bit(clock_step)},
      Occasion{"client-clock-ahead", bit(client_clock_step)},
      Occasion{"holder-clock-behind", bit(client_clock_step)},
      Occasion{"crash-holding", bit(client_kill)},
      Occasion{"crash-mid-acquire", bit(client_kill)},
      Occasion{"lost-answer-acquire", kUnanswered},
      Occasion{"lost-answer-release", kUnanswered},
      Occasion{"pause-holding", bit(client_pause)},
      Occasion{"pause-holding-fenced", bit(client_pause)},
      Occasion{"partition-holder", kUnanswered & ~bit(client_pause)},
      Occasion{"overrun-holding", kOverran},
      Occasion{"overrun-holding-fenced", kOverran},
      Occasion{"late-release", kOverran},
      Occasion{"release-race", kOverran | kUnanswered},
      Occasion{"release-without-holding", kOverran | kUnanswered},
      Occasion{"foreign-renewal", kOverran | kUnanswered},
  };
}();
/// Of a resource that trusts the lock.
constexpr std::array kUnfenced{"pause-holding"sv, "partition-holder"sv, "overrun-holding"sv};

constexpr unsigned kForeign = bits(HazardOutcome::foreign_release, HazardOutcome::foreign_renewal);
constexpr unsigned kTwoHolders = kForeign | bit(HazardOutcome::double_grant);
constexpr unsigned kLosses =
    kTwoHolders | bits(HazardOutcome::lost_update, HazardOutcome::known_loss);
constexpr unsigned kStuck =
    kForeign | bits(HazardOutcome::stuck, HazardOutcome::self_deadlock, HazardOutcome::unavailable);

class ServiceEnv final : public ForwardingEnv {
 public:
  ServiceEnv(Judge& judge, int client, std::unique_ptr<Env> env)
      : ForwardingEnv(std::move(env)), judge_(judge), client_(client) {}

  CommandFate before_command(const CommandInfo& command) override {
    judge_.serves(client_, command.key, command.name);
    return ForwardingEnv::before_command(command);
  }

 private:
  Judge& judge_;
  const int client_;
};

}  // namespace

std::string_view to_string(Oracle oracle) { return word_of<Oracle::lost_lease>(kOracles, oracle); }

void Judge::find(Oracle oracle, unsigned harms, std::string what) {
  if (finding_ || declared(harms)) return;
  if (world_->traced()) {
    world_->trace("judge", 0, fmt::format("finds {}: {}", to_string(oracle), what));
  }
  finding_ = Finding{oracle, std::move(what)};
  found_.request_stop();
}

bool Judge::declared(unsigned harms) const {
  const bool overrun = overran_ || std::ranges::any_of(claims_, [&](const auto& one) {
                         return one.second.lease && !one.second.valid_at(now());
                       });
  const unsigned happened = struck_ | (overrun ? kOverran : 0);
  return std::ranges::any_of(strategy_.hazards, [&](const KnownHazard& hazard) {
    if ((harms & bit(hazard.outcome)) == 0) return false;
    const bool unfenced = std::ranges::count(kUnfenced, hazard.scenario) > 0;
    if (unfenced && strategy_.traits.fencing) return false;
    // The models of such stores keep what their members have agreed on.
    const bool kept =
        hazard.scenario == kRestartEmpty && store_traits(strategy_.backend).members_agree;
    if (kept) return false;
    return std::ranges::any_of(kOccasions, [&](const Occasion& one) {
      return one.scenario == hazard.scenario && (one.faults & happened) != 0;
    });
  });
}

bool Judge::calm_since(TimePoint since) const {
  return troubled_until_ == TimePoint::min() ||
         troubled_until_ + kSettling + 3 * terms_.timeout < since;
}

void Judge::struck(Disturbance kind, TimePoint until) {
  struck_ |= bit(kind);
  troubled_until_ = std::max(troubled_until_, until);
  for (Lock& one : locks_) one.released = false;
}

// What clients do.

void Judge::asks(int client, int key, const std::string& name) {
  claims_[{client, key}] = Claim{.name = name, .mark = audit_.begin_acquire(key)};
  once_claimed_.emplace(client, name);
  lock(key).name = name;
  lock(key).view.asks(now());
}

void Judge::gave_up(int client, int key, AcquireOutcome outcome) {
  check_free(key);
  const bool in_doubt = outcome == AcquireOutcome::unknown;
  if (in_doubt || !calm_since(now())) may_be_kept(key);
  if (in_doubt) lock(key).released = false;
  lock(key).view.gave_up(now());
  claims_.erase({client, key});
}

void Judge::granted(int client, int key, const Lease& lease) {
  check_free(key);
  Claim& claim = claims_.at({client, key});
  claim.mode = lease.mode;
  claim.lease = lease.state;
  claim.since = now();
  claim.fencing = lease.fencing;
  if (world_->traced()) {
    const TimePoint end = lease.state->valid_until();
    world_->trace("client", client,
                  end == TimePoint::max()
                      ? fmt::format("has a lease of lock {} without an end", key)
                      : fmt::format("has a lease of lock {} until {:.3f}", key,
                                    seconds(world_->time() + (end - now()))));
  }
  check_overlap(client, key, claim);
  Lock& own = lock(key);
  own.released = false;
  // In a queue, the place of a client that is gone may come after this one.
  const Traits& traits = strategy_.traits;
  const bool queue_of_sessions = traits.fair && traits.expiry == Expiry::session;
  if (lease.mode == Mode::exclusive && calm_since(now()) && !queue_of_sessions) {
    own.kept_until = TimePoint::min();
  }
  own.view.granted({client, lease.mode, now(), lease.state});
  const std::uint64_t before = audit_.totals(now()).fence_regressions;
  audit_.enter(key, client, lease.mode, lease.fencing, claim.mark, now());
  if (audit_.totals(now()).fence_regressions > before) {
    find(Oracle::fencing, kLosses,
         fmt::format("client-{} is granted lock {} with number {}, which is not above those "
                     "granted before it asked",
                     client, key, *lease.fencing));
  }
  claim.seen = own.version;
  if (lease.mode == Mode::exclusive) {
    own.highest = std::max(own.highest, lease.fencing.value_or(0));
  }
}

void Judge::check_overlap(int client, int key, const Claim& entering) {
  if (!strategy_.traits.promises_exclusion || !entering.valid_at(now())) return;
  for (const LockView::Inside& one : lock(key).view.inside()) {
    const bool excludes = one.mode == Mode::exclusive || entering.mode == Mode::exclusive;
    if (!excludes || !one.lease->valid_at(now())) continue;
    find(Oracle::overlap, kTwoHolders,
         fmt::format(
             "client-{} is granted lock {} while client-{} is inside and believes to hold it",
             client, key, one.client));
  }
}

void Judge::write(int client, int key, const Claim& claim) {
  if (claim.mode == Mode::shared) return;
  Lock& own = lock(key);
  // A resource that knows numbers refuses old ones.
  if (claim.fencing && *claim.fencing < own.highest) return;
  const bool believes = claim.valid_at(now());
  if (own.version != claim.seen && strategy_.traits.promises_exclusion) {
    find(Oracle::lost_update, believes && own.believed ? kTwoHolders : kLosses,
         fmt::format("client-{} writes over an update of lock {}'s resource that it has not seen",
                     client, key));
  }
  own.believed = believes;
  ++own.version;
}

void Judge::leaves(int client, int key) {
  Claim& claim = claims_.at({client, key});
  write(client, key, claim);
  if (!claim.valid_at(now())) {
    overran_ = true;
    if (terms_.renewed && calm_since(claim.since)) {
      find(Oracle::lost_lease, kTwoHolders,
           fmt::format("client-{}'s renewed lease of lock {} has ended during its hold, though "
                       "nothing went wrong",
                       client, key));
    }
  }
  claim.calm = calm_since(now());
  lock(key).view.leaves(client, now());
  audit_.leave(key, claim.mode, now());
}

void Judge::released(int client, int key, ReleaseOutcome outcome) {
  const auto claim = claims_.find({client, key});
  overran_ |= !claim->second.valid_at(now());
  if (outcome != ReleaseOutcome::released) may_be_kept(key);
  // Others may share it still. A quorum may take some rounds to agree on the next holder.
  lock(key).released = outcome == ReleaseOutcome::released && claim->second.calm &&
                       calm_since(now()) && lock(key).kept_until < now() &&
                       strategy_.traits.nodes == 1;
  claims_.erase(claim);
}

void Judge::died(int client, int key) {
  const auto claim = claims_.find({client, key});
  if (claim == claims_.end()) return;
  may_be_kept(key);
  lock(key).view.leaves(client, now());
  audit_.leave(key, claim->second.mode, now());
  claims_.erase(claim);
}

void Judge::may_be_kept(int key) {
  TimePoint& until = lock(key).kept_until;
  // What was sent before the end of a fault may arrive after it.
  until = std::max(until, std::max(now(), troubled_until_) + kSettling + terms_.longest_ttl +
                              terms_.slack + kSessionsLonger);
}

void Judge::serves(int client, std::string_view name, std::string_view command) {
  if (world_ == nullptr || !once_claimed_.contains({client, std::string(name)})) return;
  const bool held = std::ranges::any_of(claims_, [&](const auto& one) {
    return one.first.first == client && one.second.lease && one.second.name == name;
  });
  // The release may come between a renewal's read and its write, which then changes nothing.
  bool& began = reads_[{client, std::string(name)}];
  if (std::ranges::count(kReads, command) > 0) {
    began = held;
    return;
  }
  if (std::exchange(began, false) || held) return;
  find(Oracle::late_renewal, 0,
       fmt::format("client-{} renews {}, which it does not hold", client, name));
}

void Judge::check_free(int key) {
  const Lock& own = lock(key);
  const TimePoint wanted = own.view.wanted_since();
  if (wanted == TimePoint::max() || troubled_until_ > now()) return;
  // Without a TTL, what a failure has left stays for ever.
  if (strategy_.traits.expiry == Expiry::none && struck_ != 0) return;
  constexpr Duration kSoon = std::chrono::seconds(5), kEach = std::chrono::seconds(2);
  Duration bound = kSoon + 4 * terms_.timeout;
  // Otherwise it may be taken until it expires, and dead clients may stand before the others.
  if (!own.released) {
    bound += 2 * terms_.longest_ttl + kSoon + kEach * terms_.clients + terms_.slack +
             strategy_.traits.kept_longer;
  }
  const Duration waited = now() - std::max(wanted, troubled_until_);
  if (waited <= bound) return;
  find(Oracle::liveness, kStuck,
       fmt::format("lock {} is free and wanted for {}{}", key,
                   format_duration(std::chrono::duration_cast<std::chrono::milliseconds>(waited)),
                   own.released ? ", though its last holder has released it" : ""));
}

std::unique_ptr<Env> Judge::watch_service(int client, std::unique_ptr<Env> env) {
  return std::make_unique<ServiceEnv>(*this, client, std::move(env));
}

bool Judge::is_released(const std::string& name) const {
  // Locks of one name are in different databases.
  const auto of_name = [&](const Lock& one) { return one.name == name; };
  return std::ranges::any_of(locks_, of_name) && std::ranges::all_of(locks_, [&](const Lock& one) {
           return !of_name(one) || one.released;
         });
}

void Judge::ended(const Nodes& nodes) {
  // The record of an observed lock stays.
  if (finding_ || strategy_.traits.observed) return;
  for (const auto& node : nodes) {
    for (const std::string& key : node->keys()) {
      if (!is_released(key)) continue;
      find(Oracle::left_behind, kStuck,
           fmt::format("the key {} is still there, though its last holder has released it", key));
    }
  }
  // Longer than what a queue remembers of waiting clients.
  constexpr Duration kRemembered = std::chrono::seconds(10);
  const Duration settling = terms_.longest_ttl + strategy_.traits.kept_longer + terms_.slack;
  world_->carrier().wait(nullptr, now() + settling + kRemembered, {});
  if (troubled_until_ > now()) return;
  // A lock that is taken over instead of expiring stays after any failure.
  const Traits& traits = strategy_.traits;
  const bool expires =
      traits.expiry == Expiry::session
          ? !traits.ends_with_connection
          : traits.expiry == Expiry::ttl && traits.release_check != OwnerCheck::local_clock;
  if (!expires && struck_ != 0) return;
  for (const auto& node : nodes) {
    for (const std::string& key : node->keys()) {
      const bool may_stay = std::ranges::any_of(
          strategy_.key_suffixes,
          [&](std::string_view suffix) { return !suffix.empty() && key.ends_with(suffix); });
      if (!may_stay)
        find(Oracle::left_behind, kStuck,
             fmt::format("the key {} is still there after its TTL", key));
    }
  }
}

}  // namespace lockbench::simulate
