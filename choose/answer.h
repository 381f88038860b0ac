#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "choose/evidence.h"
#include "loadgen/run/workload.h"
#include "results/stats/load_figures.h"
#include "results/tables/show.h"

namespace lockbench::choose {

/// One sentence of the answer, and where it can be checked.
struct Reason {
  std::string requirement;  ///< as an option: "--survive pause"; empty: not asked by the user
  std::string text;
  std::string evidence;
  std::string detail{};  ///< what was observed; may be empty
  /// Whether the user's server meets this condition, or the lock kept this objective under another
  /// load; nothing: that is not known.
  std::optional<bool> kept{};
};

/// One option of `lockbench run` and of the lock in production.
struct Setting {
  std::string option, value;  ///< "--ttl", "2400ms"; no value: the default
  std::string because;
  std::string evidence;
};

/// A strategy that was examined.
struct Candidate {
  const Descriptor* strategy = nullptr;
  std::vector<Reason> against{};     ///< reasons to rule it out; empty: it qualifies
  std::vector<Reason> in_favour{};   ///< how it meets the requirements
  std::vector<Reason> conditions{};  ///< conditions on which it qualifies, and open questions
  std::vector<Reason> needs{};       ///< what must be true of its servers
  /// Words of the faults to survive that have no play for it, of those that the user named.
  std::vector<std::string> not_concerned{};

  // If it qualifies:
  std::optional<double> value{};       ///< median of the valid repetitions; nothing: not measured
  bool at_least = false;               ///< clients still waited when the runs ended
  bool only_invalid_runs = false;      ///< so it is not ranked
  std::size_t runs = 0, left_out = 0;  ///< those that count, and invalid ones
  /// The figure under the required load on simulated machines, if it was not measured under that
  /// load. It is compared with other simulated figures alone.
  std::optional<results::LoadFigure> simulated{};
  int behind = 0;  ///< how many times twice as bad as the best simulated one with these drawbacks
  /// Strategies of one tier cannot be told apart by the figure; 1 is the best, 0: not measured.
  int tier = 0;
  int servers = 1;                          ///< how many it needs
  std::optional<double> commands{};         ///< per section
  std::vector<std::string_view> hazards{};  ///< plays that harm it
  bool blocks_successors = false;           ///< of a frozen leader, or of a long job that crashed
  /// By drawback, how much of it; of less important ones only between equals.
  std::vector<std::size_t> drawbacks{};
  std::string drawback{};  ///< in words: why it comes after those without one
  std::vector<Setting> settings{};
  /// "failover (two holders)": faults that were not asked for; of the first choice and of today's.
  std::vector<std::string> not_survived{};

  bool qualifies() const { return against.empty(); }
};

/// The figure that ranks qualifying strategies.
struct RankingFigure {
  std::string figure;  ///< path of a run's number; empty: no figure decides
  std::string why;
  bool higher_is_better = false;
};

/// Dropping these requirements, as few as possible, would let these strategies in.
struct Relaxation {
  std::vector<std::string> requirements, strategies;  ///< the best strategy first
  std::vector<std::string> instead;                   ///< how to make up for them
};

/// How another leader takes over after a failure.
struct Takeover {
  std::string after, text, evidence;
};

/// How to use the lock in a language.
struct Code {
  std::string language, text;  ///< "any": SQL for any driver
};

/// The answer, a function of descriptors and results: it knows no strategy by name.
struct Answer {
  Requirements requirements, answered;  ///< those given, and those with a load that a lock can keep
  /// Why no lock keeps the required rate, and what would; the answer is then for that many keys.
  /// Empty: a lock can keep it. After a measurement, the answer is for the required load.
  std::string too_busy{};
  double taken = 0;  ///< then: the share of the time for which the busiest lock would be taken
  RankingFigure ranked_by;
  std::string measured_in;               ///< files and load of the figures; empty: none
  std::vector<std::string> differences;  ///< of that load from the required one
  std::string assumption;                ///< about unknown parts of the load; may be empty
  std::vector<std::string> left_out;     ///< files with figures that are not comparable
  std::vector<Candidate> ranked;         ///< the strategies that qualify, the best first
  std::vector<Candidate> ruled_out;      ///< in the order of the catalogue
  std::string check;                     ///< the command that tries the best under that load
  /// Why it is not decided whether the best keeps an objective, measured under that load or missed
  /// under another one, or that it is the best; empty: it is, or nothing was measured.
  std::string not_decided{};
  std::vector<Takeover> takeovers;      ///< --for leader: of the best
  std::string guard;                    ///< in the protected resource, against late writes
  std::vector<Code> code;               ///< for the best
  std::vector<Relaxation> relaxations;  ///< if nothing qualifies
};

/// Short runs of the required load on simulated machines, by strategy.
using Simulations = std::map<std::string, results::Run, std::less<>>;

/// Plays the load of the answer with its strategies that were not measured under such a load, if
/// their store can be simulated: with the settings of the answer, as fast as the evidence's runs
/// alone. None if no figure decides, or if the load is too large to be played in some seconds. The
/// same answer gives the same simulations. `workload_of` makes the load of `lockbench run` with the
/// candidate's settings.
Simulations simulate_unmeasured(
    const Answer& answer, const Evidence& evidence,
    const std::function<loadgen::Workload(const Candidate&)>& workload_of);

/// `before`: the answer whose strategies were measured for this one. Strategies that it ruled out
/// stay out, and the others keep the settings that they were measured with. `simulations`: of the
/// required load, may be null.
Answer choose(const Requirements& requirements, const std::vector<const Descriptor*>& catalogue,
              const Evidence& evidence, const Answer* before = nullptr,
              const Simulations* simulations = nullptr);

/// The value of --ttl among the settings, or "the TTL".
std::string ttl_of(const std::vector<Setting>& settings);
/// The strategy's libraries; if re-entrancy is required and not the store's, those that have it.
std::vector<Library> libraries_for(const Descriptor& strategy, const Requirements& requirements);
/// How to set up the library for the first choice; empty if the answer has code for it.
std::string setup_of(const Library& library, const Answer& answer);

/// The code for that use with these settings, of the required languages or all.
std::vector<Code> code_for(const Descriptor& strategy, const Requirements& requirements,
                           const std::vector<Setting>& settings);
/// Whether a library or code of the language implements the lock for that use.
bool implements(const Descriptor& strategy, Use use, const std::string& language);
/// Whether lockbench designed it, so that no library implements it.
bool is_recipe(const Descriptor& strategy);

/// Null if the answer does not know it.
const Candidate* find_candidate(const Answer& answer, std::string_view strategy);

/// The required load, and these settings, as options of `lockbench run`.
std::vector<std::string> load_options(const Requirements& requirements);
std::vector<std::string> lock_options(const std::vector<Setting>& settings);

/// The answer for people, in at most 25 lines; with `why`, followed by its evidence: which
/// strategies qualify, and why the others are ruled out.
std::string to_text(const Answer& answer, const results::TextStyle& style, bool why = false);
/// The same for programs; see choose/README.md for its fields. `requirements`: as they were given.
std::string to_json(const Answer& answer,
                    const std::map<std::string, results::OptionValue>& requirements = {});

// The steps to an answer, in the order of choose/README.md.

/// The requirements, and the evidence for the answer. Made once for each answer; refers to both
/// arguments, and to the simulations.
struct Question {
  Question(const Requirements& wanted, const Evidence& known, const Simulations* played = nullptr)
      : requirements(wanted),
        evidence(known),
        basis(known.basis_for(wanted)),
        asked(asked_load(wanted)),
        others(basis.sources.empty() ? std::vector<Difference>{} : differences(asked, basis.load)),
        simulations(played) {}

  /// Null: it was not simulated.
  const results::Run* simulated(std::string_view strategy) const {
    if (simulations == nullptr) return nullptr;
    const auto found = simulations->find(strategy);
    return found == simulations->end() ? nullptr : &found->second;
  }

  const Requirements& requirements;
  const Evidence& evidence;
  const Evidence::Basis basis;
  const Load asked;
  const std::vector<Difference> others;  ///< of the measured load from `asked`
  const Simulations* const simulations;  ///< of the required load; may be null
};

Candidate examine(const Descriptor& strategy, const Question& question);

/// The report of a play that the lock does not survive; null without one. If the work must last, a
/// loss that the holder knows of is harm, too; if the fault is there for good, so is a lock that is
/// refused.
const FaultReport* find_harm(const std::vector<FaultReport>& reports, const Survival& survival);

/// Reason::requirement of reasons about this objective, or about this fault.
std::string option_of(const results::Threshold& slo);
std::string option_of(const Survival& survival);

/// Whether a fault of its holder can end the lock while the holder lives.
bool runs_out(const Traits& traits);

/// Whether a fixed TTL would block the lock for minutes after a crash, or cannot be known.
bool is_long_held(const Requirements& requirements);

/// Whether the lock can last as long as its holder.
bool lasts(const Descriptor& strategy);

/// "seen in FILE; lockbench hazards --explain SCENARIO/STRATEGY".
std::string where_shown(const FaultReport& report, const Descriptor& strategy);

/// The settings of the strategy under these requirements, from its traits and measurements.
std::vector<Setting> settings_for(const Descriptor& strategy, const Question& question);

/// The max_connections with which PostgreSQL has one for each of so many clients, too.
int connections_needed(const ServerSettings& server, int clients);

/// Whether it needs three members, as its store elects a leader and one member may fail.
bool needs_members(const Descriptor& strategy, const Requirements& requirements);

/// The longest time from the last renewal of a crashed holder to the next grant.
Duration longest_blocked(const Descriptor& strategy, Duration ttl);
/// The same if the store's own leader changes meanwhile; nothing if its servers have none.
std::optional<Duration> longest_blocked_by_election(const Descriptor& strategy, Duration ttl);

/// A connection to a dead host ends after so long, by the recommended keepalives.
constexpr Duration kKeepalives = std::chrono::seconds(8);

/// What the lock needs of its servers, checked against Requirements::servers.
std::vector<Reason> needs_of(const Descriptor& strategy, const Requirements& requirements);

/// The faults with a word that were not asked for and that harm the lock: "failover (two holders)".
std::vector<std::string> not_survived(const Descriptor& strategy, const Question& question);

/// The command that checks the settings under the required load; if the work is too long for a
/// load, plays of the faults that were asked for.
std::string check_command(const Candidate& best, const Requirements& requirements);

}  // namespace lockbench::choose
