#include <fmt/format.h>

#include <algorithm>

#include "choose/answer.h"
#include "strategies/number.h"

// What must be true of the servers, for a lock to be what the answer says.

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;

/// How the servers of a store end sessions, by default.
struct Sessions {
  std::string_view store;
  Duration step;     ///< they look for sessions that are over this often
  Duration restart;  ///< beyond a session's time-out, after their own leader has changed
};
constexpr Sessions kSessions[] = {
    // A new leader renews all leases, by their TTL and its election timeout (1 s), after an
    // election of up to 2 s.
    {"etcd", 500ms, 3s},
    // Sessions end at a tick (2 s). A new leader renews all, after an election of a few ticks.
    {"zookeeper", 2s, 6s}};

const Sessions* sessions_of(const Descriptor& strategy) {
  const auto* const found = std::ranges::find(kSessions, strategy.backend, &Sessions::store);
  return found == std::end(kSessions) || strategy.traits.expiry != Expiry::session ? nullptr
                                                                                   : found;
}

/// Connections that PostgreSQL keeps for superusers by default.
constexpr int kReserved = 3;

std::string value_of(const ServerSettings& server, const std::string& name) {
  const auto found = server.find(name);
  return found == server.end() ? "" : found->second;
}

class Conditions {
 public:
  Conditions(const Descriptor& strategy, const Requirements& requirements)
      : strategy_(strategy), traits_(strategy.traits), requirements_(requirements) {
    const auto known = requirements.servers.find(strategy.backend);
    if (known != requirements.servers.end()) server_ = &known->second;
  }

  std::vector<Reason> all() {
    const StoreTraits& store = store_traits(strategy_.backend);
    if (traits_.ends_with_connection) sessions(store);
    if (traits_.nodes > 1) {
      add("5 servers that fail independently, none a replica of another; a restarted one stays "
          "away for one TTL");
    } else if (store.evicts_keys) {
      redis();
    }
    if (needs_members(strategy_, requirements_)) {
      add("three members, so that one may fail, with the addresses of all in every client");
    }
    if (strategy_.backend == "zookeeper" && requirements_.clients > 60) {
      add("maxClientCnxns above the clients of one host (60 by default)");
    }
    const bool alone = !store.members_agree && traits_.nodes == 1;
    if (alone && !requirements_.is_for(Use::mutex) && !must_survive(requirements_, "failover")) {
      add(requirements_.is_for(Use::leader)
              ? "one server: nobody leads while it is down, and a failover may give two leaders "
                "(--survive failover)"
              : "one server: a failover may let the job run twice (--survive failover)");
    }
    return std::move(found_);
  }

 private:
  /// `kept`: as the user's server shows; nothing: it was not asked.
  void add(std::string text, std::optional<bool> kept = {}, const std::string& shown = "") {
    if (kept) text = fmt::format("{}{}: {}", *kept ? "" : "NOT MET: ", text, shown);
    found_.push_back({"",
                      std::move(text),
                      kept ? fmt::format("asked with --{}", strategy_.backend)
                           : fmt::format("give --{} to check it", strategy_.backend),
                      {},
                      kept});
  }

  std::string setting(const std::string& name) const {
    return server_ == nullptr ? "" : value_of(*server_, name);
  }
  std::optional<int> number(const std::string& name) const {
    return parse_number<int>(setting(name));
  }

  void sessions(const StoreTraits& store) {
    const int clients = requirements_.clients.value_or(0);
    const auto most = number("max_connections");
    const int needed = connections_needed(server_ ? *server_ : ServerSettings{}, clients);
    std::string text = clients == 0
                           ? "a connection for each client that holds or waits: max_connections"
                           : fmt::format(
                                 "{} connections, as waiting clients need theirs too: "
                                 "max_connections of at least {}",
                                 clients, needed);
    if (most) {
      add(std::move(text), *most >= needed, fmt::format("it is {}", *most));
    } else {
      add(fmt::format("{} ({} by default)", text, store.connections));
    }
    if (store.poolers && !traits_.pooled) no_pooler();
    const auto idle = number("tcp_keepalives_idle");
    if (!must_survive(requirements_, "host-crash") || !idle) return;
    const int ends = *idle + number("tcp_keepalives_interval").value_or(0) *
                                 number("tcp_keepalives_count").value_or(0);
    add("TCP keepalives that end the connections of a dead host",
        *idle > 0 && ends <= seconds(kKeepalives) * 2, fmt::format("they take {} s", ends));
  }

  void no_pooler() {
    const std::string pooler = setting("pooler");
    add("no transaction pooler in between (PgBouncer: pool_mode = session)",
        pooler.empty() ? std::nullopt : std::optional(pooler == "no"),
        pooler == "no" ? "there is none" : "there is one");
  }

  void redis() {
    const std::string policy = setting("maxmemory_policy");
    const bool bounded = number("maxmemory").value_or(1) != 0;
    add("maxmemory-policy noeviction, or Redis may evict the lock",
        policy.empty() ? std::nullopt : std::optional(!bounded || policy == "noeviction"),
        bounded ? "it is " + policy : "there is no maxmemory");
    if (must_survive(requirements_, "restart")) {
      const std::string aof = setting("aof_enabled");
      add("appendonly yes and appendfsync always, or a restart forgets locks",
          aof.empty() ? std::nullopt : std::optional(aof == "1"),
          aof == "1" ? "appendonly is on; check appendfsync" : "appendonly is off");
    }
    if (!traits_.needs_replicas) return;
    const auto replicas = number("connected_slaves");
    add("two replicas, of which Sentinel may promote only those that acknowledge each lock",
        replicas ? std::optional(*replicas >= 2) : std::nullopt,
        fmt::format("{} are connected", replicas.value_or(0)));
  }

  const Descriptor& strategy_;
  const Traits& traits_;
  const Requirements& requirements_;
  const ServerSettings* server_ = nullptr;
  std::vector<Reason> found_;
};

std::string in_words(std::string_view outcome) {
  if (outcome == to_string(HazardOutcome::double_grant)) return "two holders";
  if (outcome == to_string(HazardOutcome::lost_update)) return "a late write";
  if (outcome == to_string(HazardOutcome::stuck)) return "blocked for good";
  if (outcome == to_string(HazardOutcome::known_loss)) return "the holder must stop in time";
  if (outcome == to_string(HazardOutcome::refused)) return "no lock";
  return std::string(outcome);
}

}  // namespace

int connections_needed(const ServerSettings& server, int clients) {
  const auto number = [&](const char* name) { return parse_number<int>(value_of(server, name)); };
  return clients + number("connections").value_or(0) +
         number("superuser_reserved_connections").value_or(kReserved);
}

bool needs_members(const Descriptor& strategy, const Requirements& requirements) {
  const auto faults = faults_to_survive(requirements);
  return store_traits(strategy.backend).members_agree &&
         (requirements.is_for(Use::leader) ||
          std::ranges::any_of(faults, &Survival::takes_a_server));
}

std::vector<Reason> needs_of(const Descriptor& strategy, const Requirements& requirements) {
  return Conditions(strategy, requirements).all();
}

Duration longest_blocked(const Descriptor& strategy, Duration ttl) {
  const Traits& traits = strategy.traits;
  const Sessions* const sessions = sessions_of(strategy);
  return ttl + traits.kept_longer +
         (traits.lock_delay ? StrategyOptions{}.lock_delay : Duration{}) +
         // A candidate sees the last renewal, and its end, up to 2.2 retry periods late.
         (traits.observed ? ttl * 3 / 5 : Duration{}) +
         (sessions != nullptr ? sessions->step : Duration{});
}

std::optional<Duration> longest_blocked_by_election(const Descriptor& strategy, Duration ttl) {
  const Sessions* const sessions = sessions_of(strategy);
  if (sessions == nullptr) return std::nullopt;
  // The old leader may fail just before it ends the session.
  return longest_blocked(strategy, ttl) + ttl + sessions->restart;
}

std::vector<std::string> not_survived(const Descriptor& strategy, const Question& question) {
  std::vector<std::string> found;
  for (const Survival& fault : fault_words()) {
    if (must_survive(question.requirements, fault.word)) continue;
    // The settings have keepalives.
    const bool met = strategy.traits.ends_with_connection && !fault.on_condition.empty();
    const std::vector<FaultReport> reports = results::each_of(
        met ? fault.on_condition : fault.scenarios,
        [&](const std::string& scenario) { return question.evidence.report(scenario, strategy); });
    const FaultReport* const harm = find_harm(reports, fault);
    if (harm) found.push_back(fmt::format("{} ({})", fault.word, in_words(harm->outcome)));
  }
  return found;
}

}  // namespace lockbench::choose
