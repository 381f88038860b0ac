#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "choose/requirements.h"
#include "hazards/scenario.h"
#include "loadgen/run/duration_distribution.h"

namespace lockbench::choose {

/// The load on one lock, the one that is wanted most; unknown parts are nothing. Times are in
/// seconds.
struct Load {
  std::optional<double> clients;  ///< that share the lock
  std::optional<double> work;     ///< that a section takes on average
  std::optional<double> rate;     ///< sections per second; nothing: each client asks again at once
  std::optional<double> rtt;      ///< added between clients and servers
  bool shared = false;            ///< some of the sections hold the lock together
  // Where nothing was said about them:
  std::optional<double> assumed_utilisation, assumed_work;

  bool contended() const;
  /// Of the time, the share for which somebody needs the lock, from 0 to 1: (work + round trip) ×
  /// rate, or 1 if several clients always want it. What is shared is never taken for full.
  double utilisation() const;
  /// The rate, or that of the assumed utilisation.
  std::optional<double> demand() const;
};

/// Of a shared lock's sections, those that are assumed to read.
constexpr double kReaders = 0.9;

/// Whether it wants at least so many sections per second.
bool wants_throughput(const results::Threshold& slo);

/// Sections per second over all locks; without --rate, what an objective of throughput needs.
std::optional<double> wanted_rate(const Requirements& requirements);

/// The share of the sections that want the lock that is wanted most.
double busiest_share(const Requirements& requirements);

/// The work's median and 99th percentile as a distribution; nothing unless both are known.
std::optional<loadgen::DurationDistribution> spread_of_work(const Requirements& requirements);

/// What was asked. Without a rate, a mutex for several clients is assumed to be busy for 70 % of
/// the time, or what so many clients can at most, and one for which nothing is said for 30 %.
/// Without a work time, 2 ms are assumed, or what keeps the rate's lock busy for 70 % of the time.
Load asked_load(const Requirements& requirements);
Load measured_load(const results::Result& result);

struct Difference {
  std::string text;      ///< "8 clients at a lock instead of 200"
  bool lighter = false;  ///< than what was asked
};
std::vector<Difference> differences(const Load& asked, const Load& measured);

/// A result, and what it is called in sentences: its file.
struct Source {
  std::string name;
  results::Result result;
};

/// What a fault does to a strategy, and how that is known.
struct FaultReport {
  std::string scenario, outcome;
  bool harmful = false;  ///< two holders, a lost update, another's lock touched, or no lock at all
  bool played = false;   ///< in `source`; else it is declared, or could not be played
  bool blocks = false;   ///< the lock does not run out: contenders wait for its holder
  std::string reason;    ///< in plain words; may be empty
  /// Of the play, also where a worse declaration outweighs it and where it could not be played;
  /// else empty.
  std::string source;
};

/// The results that answers rest on. The user's files come first; the reference fills in runs,
/// plays or an experiment where no file has any. Immutable, and so safe to share.
class Evidence {
 public:
  Evidence(std::vector<Source> files, std::vector<Source> reference);

  struct Runs {
    std::vector<const results::Run*> runs;  ///< of one strategy; empty: it was not measured
    bool valid = true;                      ///< false: all are invalid
    std::size_t left_out = 0;               ///< invalid ones, if there are valid ones
  };
  /// Where all figures of one answer come from: of the user's files, or else of the reference, the
  /// one whose load is nearest to what was asked, and those of the same machine and load.
  struct Basis {
    std::vector<const Source*> sources;  ///< empty: nothing was measured that could answer
    Load load;
    std::string name;                   ///< "mine.json: 8 clients, 1 key, no work inside"
    std::vector<std::string> left_out;  ///< the user's other files with runs, and why

    Runs runs_of(std::string_view strategy) const;
  };
  /// Looks at every source: once for each answer. The evidence must outlive it.
  Basis basis_for(const Requirements& requirements) const;

  /// The strategy's run with the longest release, among the user's or else the reference's without
  /// an injected fault; null without one.
  const results::Run* slowest_release(std::string_view strategy) const;

  struct Violation {
    const results::Run* run = nullptr;  ///< null: it never broke exclusion
    const Source* source = nullptr;
  };
  /// The first of all runs in which it broke exclusion.
  Violation violation_of(std::string_view strategy) const;

  /// The observed outcome, or the declared one if that is worse. An unknown name of a scenario is a
  /// programming error and throws std::logic_error.
  FaultReport report(const hazards::Scenario& scenario, const Descriptor& strategy) const;
  FaultReport report(std::string_view scenario, const Descriptor& strategy) const;

  struct Experiment {
    std::vector<const results::Run*> runs;
    std::string source;
  };
  /// The runs whose load has what an experiment varies, of the first source that has any.
  Experiment experiment(bool (*has)(const results::Load&)) const;

 private:
  std::vector<Source> files_, reference_;
};

/// The results in results/reference, as they were when lockbench was built. A file among them that
/// cannot be read is a mistake of the build's, and throws std::runtime_error.
std::vector<Source> reference();

/// A file of results/reference. reference_files() is generated from them when lockbench is built.
struct ReferenceFile {
  std::string_view name, text;
};
std::vector<ReferenceFile> reference_files();

}  // namespace lockbench::choose
