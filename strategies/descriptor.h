#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/env.h"
#include "strategies/lock_strategy.h"
#include "strategies/renewal_timing.h"
#include "strategies/services.h"
#include "strategies/waiting/wait_policy.h"

namespace lockbench {

enum class Expiry { none, ttl, session };

/// What a release (or renewal) looks at before it changes the store.
enum class OwnerCheck {
  none,         ///< nothing: it frees whoever holds the lock
  local_clock,  ///< its own clock: frees another's lock if that clock is wrong or slow
  two_steps,    ///< the store, but not in one step with the change
  atomic,       ///< the store, in one step with the change
};

/// A fault's outcome, in the words of the hazard scenarios.
enum class HazardOutcome {
  safe,
  double_grant,
  lost_update,
  foreign_release,
  foreign_renewal,
  stuck,
  self_deadlock,
  unavailable,
  refused,
  recovers,
  not_applicable,
};

struct KnownHazard {
  std::string_view scenario;
  HazardOutcome outcome;
};

struct Traits {
  Expiry expiry = Expiry::ttl;
  OwnerCheck release_check = OwnerCheck::none;
  /// Nothing where there is no validity to prolong.
  std::optional<OwnerCheck> renew_check;
  /// False for controls: shown for comparison, allowed to break exclusion.
  bool promises_exclusion = true;
  /// Exclusion holds among the threads of one process only.
  bool one_process = false;
  /// Whole seconds: the store cannot hold a finer TTL.
  bool ttl_in_seconds = false;
  bool reentrant = false;
  bool fencing = false;
  /// When a timer renews it by default; nothing: only where the user asks for it.
  std::optional<RenewalTiming> renews{};
  /// A timer can renew it.
  bool renewable = false;
  bool fair = false;
  /// Has a shared mode: its holders exclude exclusive ones, but not each other.
  bool shared = false;
  /// Independent servers that one lock lives on: 0 = none at all, 1 = one, 2 = a quorum of several.
  int nodes = 1;
  /// Its server must have replicas.
  bool needs_replicas = false;
  /// How a client waits by default, and what `--wait` may put in its place.
  WaitPolicy waiting = WaitPolicy::poll(std::chrono::milliseconds(100));
  std::vector<WaitKind> waiting_choices = {WaitKind::poll, WaitKind::backoff};
};

/// Where the stores are: URLs as the user gave them, secrets included, per set of servers: see
/// server_set().
using Endpoints = std::map<std::string, std::vector<std::string>, std::less<>>;

struct StrategyOptions {
  std::optional<WaitPolicy> wait;        ///< in place of the strategy's own, where it can
  std::optional<RenewPolicy> renew;      ///< likewise
  std::optional<Duration> renew_cap;     ///< the longest that renewal may prolong one lease
  std::optional<Duration> node_timeout;  ///< how long one node of a quorum is waited for
  Duration lock_delay = std::chrono::seconds(1);  ///< chubby: after a failure nobody is granted
  Duration command_timeout = std::chrono::seconds(3);  ///< the longest one answer may take
  std::optional<int> wait_replicas;  ///< how many must acknowledge a lock; nothing: all there are
  Duration wait_timeout = std::chrono::milliseconds(100);  ///< within which they must
};

/// What a strategy is made from. Everything referred to outlives the strategy.
struct Context {
  const Endpoints& endpoints;
  const StrategyOptions& options;
  Env& env;
  Services& services;
  int client = 0;  ///< this client's number in its process
  // Filled in by make_strategy: the strategy's own, or what replaces it.
  std::vector<std::string> urls{};  ///< of its servers
  WaitPolicy waiting{};
  std::optional<RenewalTiming> renewing{};
};

/// All that the rest of lockbench knows of a strategy; stands at the end of the strategy's own
/// file. Command line, README, conformance tests and hazard matrix are derived from it.
struct Descriptor {
  std::string_view name;
  /// "redis"; "local" for what needs no store.
  std::string_view backend;
  std::string_view summary;  ///< one line
  /// The commands it sends, in words that a manual has: {"SET key token NX PX ttl"}.
  std::vector<std::string_view> acquire_commands;
  std::vector<std::string_view> release_commands;
  std::vector<std::string_view> renew_commands{};  ///< where a timer renews it by default
  std::string_view source;                         ///< article, paper or documentation
  Traits traits;
  /// What breaks it. Tables show the gravest; of those that are equally grave the first.
  std::vector<KnownHazard> hazards;
  std::function<std::unique_ptr<LockStrategy>(const Context&)> make;
  /// Appended to a lock's key, these name everything that it may leave in the store.
  std::vector<std::string_view> key_suffixes = {""};
  /// Why this build cannot make it, in which case name and backend are all that is known of it.
  std::string_view not_built = {};
};

/// The set of servers that a strategy uses, as Endpoints have it: its backend's, unless it needs
/// others of that kind, so that a private one with replicas is not shared with those that do not.
std::string server_set(const Descriptor& descriptor);

/// The URLs of that set, or the backend's own if there is no such set; empty without servers.
std::vector<std::string> urls_of(const Descriptor& descriptor, const Endpoints& endpoints);

/// One client's instance. It waits as the options say where its protocol allows that, else in its
/// own way.
std::unique_ptr<LockStrategy> make_strategy(const Descriptor& descriptor, Context context);

/// For `Descriptor::make`.
template <class Strategy>
std::unique_ptr<LockStrategy> construct(const Context& context) {
  return std::make_unique<Strategy>(context);
}

std::string_view to_string(Expiry expiry);
std::string_view to_string(OwnerCheck check);
std::string_view to_string(HazardOutcome outcome);

}  // namespace lockbench
