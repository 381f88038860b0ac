#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "choose/requirements.h"
#include "hazards/scenario.h"
#include "loadgen/run/duration_distribution.h"

namespace lockbench::choose {

/// The load on the busiest lock; unknown parts are nothing. Times are in seconds.
struct Load {
  std::optional<double> clients;  ///< clients that share the lock
  std::optional<double> work;     ///< mean time of a section
  std::optional<double> rate;     ///< sections per second; nothing: clients ask again immediately
  std::optional<double> rtt;      ///< added between clients and servers
  bool shared = false;            ///< some of the sections hold the lock together
  // Assumed if not given:
  std::optional<double> assumed_utilisation, assumed_work;

  bool contended() const;
  /// The share of the time in which the lock is needed, from 0 to 1: (work + round trip) × rate, or
  /// 1 if several clients always want it. A shared lock never counts as fully used.
  double utilisation() const;
  /// The rate, or that of the assumed utilisation.
  std::optional<double> demand() const;
};

/// The share of a shared lock's sections that are assumed to read.
constexpr double kReaders = 0.9;

/// Whether the objective asks for a minimum of sections per second.
bool wants_throughput(const results::Threshold& slo);

/// Sections per second over all locks; without --rate, the rate that a throughput objective needs.
std::optional<double> wanted_rate(const Requirements& requirements);

/// The share of the sections that use the busiest lock.
double busiest_share(const Requirements& requirements);

/// The work's median and 99th percentile as a distribution; nothing unless both are known.
std::optional<loadgen::DurationDistribution> spread_of_work(const Requirements& requirements);

/// The required load. Without a rate, a mutex for several clients is assumed to be busy for 70 % of
/// the time, or for as much as so many clients can cause; a mutex without any given load, for 30 %.
/// Without a work time, 2 ms are assumed, or the work that keeps the lock busy for 70 % of the time
/// at the rate.
Load asked_load(const Requirements& requirements);
Load measured_load(const results::Result& result);

struct Difference {
  std::string text;      ///< "8 clients at a lock instead of 200"
  bool lighter = false;  ///< than required
};
std::vector<Difference> differences(const Load& asked, const Load& measured);

/// A result, and its name in sentences: its file.
struct Source {
  std::string name;
  results::Result result;
};

/// What a fault does to a strategy, and how that is known.
struct FaultReport {
  std::string scenario, outcome;
  bool harmful = false;  ///< two holders, a lost update, another's lock changed, or no lock at all
  bool played = false;   ///< in `source`; else it is declared, or could not be played
  bool blocks = false;   ///< the lock does not expire: contenders wait for its holder
  std::string reason;    ///< in plain words; may be empty
  /// The source of the play, even if a worse declaration outweighs it or it could not be played;
  /// empty without a play.
  std::string source;
};

/// The results that answers rest on. The user's files come first; the reference supplies runs,
/// plays or an experiment that no file has. Immutable, so safe to share.
class Evidence {
 public:
  Evidence(std::vector<Source> files, std::vector<Source> reference);

  struct Runs {
    std::vector<const results::Run*> runs;  ///< of one strategy; empty: it was not measured
    bool valid = true;                      ///< false: all are invalid
    std::size_t left_out = 0;               ///< number of invalid runs, if there are valid ones
  };
  /// The sources of all figures of one answer: of the user's files, or else of the reference, the
  /// source with the load nearest to the required one, and those of the same machine and load.
  struct Basis {
    std::vector<const Source*> sources;  ///< empty: no measurement can answer
    bool own = false;                    ///< of the user's files
    /// The load is so different that its figures may mislead; or no run is valid.
    bool far = false;
    Load load;
    std::string name;                   ///< "mine.json: 8 clients, 1 key, no work inside"
    std::vector<std::string> left_out;  ///< the user's other files with runs, and why

    Runs runs_of(std::string_view strategy) const;
  };
  /// Scans every source; call once for each answer. The evidence must outlive it.
  Basis basis_for(const Requirements& requirements) const;

  /// The strategy's run with the longest release, among the user's or else the reference's without
  /// an injected fault; null without one.
  const results::Run* slowest_release(std::string_view strategy) const;

  /// The valid runs under the load `alone` of the strategy, or else of one on the same store; of
  /// the user's files, or else of the reference. Other parts of the result are empty.
  results::Result alone(const Descriptor& strategy) const;

  struct Violation {
    const results::Run* run = nullptr;  ///< null: the strategy never broke exclusion
    const Source* source = nullptr;
  };
  /// The first of all runs in which the strategy broke exclusion.
  Violation violation_of(std::string_view strategy) const;

  /// The observed outcome, or the declared one if that is worse. An unknown scenario is a
  /// programming error and throws std::logic_error.
  FaultReport report(const hazards::Scenario& scenario, const Descriptor& strategy) const;
  FaultReport report(std::string_view scenario, const Descriptor& strategy) const;

 private:
  std::vector<Source> files_, reference_;
};

/// The results in results/reference at build time. An unreadable file is a mistake in the build and
/// throws std::runtime_error.
std::vector<Source> reference();

/// A file of results/reference or choose/code. The build generates these functions.
struct EmbeddedFile {
  std::string_view name, text;
};
std::vector<EmbeddedFile> reference_files();
std::vector<EmbeddedFile> code_files();

}  // namespace lockbench::choose
