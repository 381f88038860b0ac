#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/stats/threshold.h"
#include "strategies/duration.h"

namespace lockbench::choose {

/// What the lock is for.
enum class Use {
  mutex,   ///< clients exclude each other, and wait
  once,    ///< a job that must not run twice: a client that does not get the lock skips it
  leader,  ///< one client holds it as long as it lives; the takeover matters
};

/// A fault that the lock must survive, in the user's words.
struct Survival {
  std::string word;
  std::vector<std::string> scenarios;  ///< hazards that stand for it: all must be survived
  /// How to help a lock that does not survive it; empty: no known way.
  std::string workaround{};
  /// Scenarios to use instead if the protected resource checks fencing numbers; empty: fencing does
  /// not help.
  std::vector<std::string> fenced{};
  /// Scenarios to use instead if none of `scenarios` applies to a strategy; may be empty.
  std::vector<std::string> otherwise{};
  /// Scenarios to use instead on this condition.
  std::vector<std::string> on_condition{};
  std::string condition{};
  /// A lock whose TTL outlasts the fault is not lost.
  bool outlasted = false;
  std::optional<Duration> longest{};  ///< of the fault, if the user gave it
  /// It lasts, so a lock that is refused then is of no use.
  bool for_good = false;
  /// The work must go on: a holder that knows of the loss and stops is not enough.
  bool must_last = false;
  /// A server is lost for good, with everything that is stored only there.
  bool takes_a_server = false;
  bool is_basic = false;  ///< required of every lock, unless waived
};

/// Store::settings().
using ServerSettings = std::map<std::string, std::string>;

/// What a user requires of a lock. Unset fields require nothing.
struct Requirements {
  std::vector<std::string> stores;  ///< available stores; none: any
  std::vector<Survival> survive;    ///< in addition to the basic ones
  std::vector<std::string> waived;  ///< basic faults that need not be survived
  /// The longest faults to survive: of clients, of the servers, and of a failover.
  std::optional<Duration> pause, outage, failover;
  std::optional<Use> use;                      ///< nothing: mutex
  std::optional<Duration> work_p50, work_p99;  ///< how long a section's work takes
  std::optional<int> clients;                  ///< clients that want a lock
  std::optional<double> rate;                  ///< sections per second, of all clients together
  std::optional<int> keys;                     ///< distinct locks; nothing: one
  double key_skew = 0;                         ///< Zipf exponent of the choice among them
  std::optional<Duration> rtt;                 ///< between clients and servers
  std::vector<results::Threshold> slos;
  /// Whether the protected resource rejects late writes by their fencing number. Nothing: unknown;
  /// the answer then says what depends on it.
  std::optional<bool> fencing_resource;
  bool fair = false, reentrant = false, shared = false;
  std::vector<std::string> languages;  ///< of the clients: the lock needs a library for each
  std::string today{};                 ///< the strategy in use, to compare with; empty: none
  std::map<std::string, ServerSettings, std::less<>> servers{};  ///< the user's, by store
  std::string rank_by{};  ///< path of a run's figure; empty: the one that fits the requirements

  bool none() const {
    return stores.empty() && survive.empty() && waived.empty() && !pause && !outage && !failover &&
           !use && !work_p50 && !work_p99 && !clients && !rate && !keys && !rtt && slos.empty() &&
           !fencing_resource && !fair && !reentrant && !shared && languages.empty() &&
           today.empty();
  }
  bool is_for(Use one) const { return use.value_or(Use::mutex) == one; }
};

/// The faults with their own word: "crash", "pause".
const std::vector<Survival>& fault_words();

/// The fault for such a word, a scenario's name or a glob over scenarios; nothing for other texts.
std::optional<Survival> find_survival(std::string_view text);

/// The basic faults that are not waived, then those that the user named or gave a size.
std::vector<Survival> faults_to_survive(const Requirements& requirements);
/// Whether the fault with this word is one of them.
bool must_survive(const Requirements& requirements, std::string_view word);

}  // namespace lockbench::choose
