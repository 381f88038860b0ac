#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "choose/load.h"
#include "hazards/scenario.h"
#include "results/file/model.h"

namespace lockbench::choose {

/// A result, and what it is called in sentences: its file.
struct Source {
  std::string name;
  results::Result result;
};

/// What a fault does to a strategy, and how that is known.
struct FaultReport {
  std::string scenario, outcome;
  bool harmful = false;  ///< two holders, a lost update, another's lock touched, or no lock at all
  bool played = false;   ///< in `source`; else it is what the strategy declares
  bool blocks = false;   ///< the lock does not run out: contenders wait for its holder
  std::string reason;    ///< in plain words; may be empty
  std::string source;    ///< of the play, also where a worse declaration outweighs it; else empty
};

/// The results that answers rest on. The user's files come first; the reference fills in runs,
/// plays or an experiment where no file has any. Immutable, and so safe to share.
class Evidence {
 public:
  Evidence(std::vector<Source> files, std::vector<Source> reference);

  /// Where all figures of one answer come from: of the user's files, or else of the reference, the
  /// one whose load is nearest to what was asked, and those of the same machine and load.
  struct Basis {
    std::vector<const Source*> sources;  ///< empty: nothing was measured that could answer
    Load load;
    std::string name;                   ///< "mine.json: 8 clients, 1 key, no work inside"
    std::vector<std::string> left_out;  ///< the user's other files with runs, and why
  };
  Basis basis_for(const Requirements& requirements) const;

  struct Runs {
    std::vector<const results::Run*> runs;  ///< of one strategy; empty: it was not measured
    bool valid = true;                      ///< false: all are invalid
    std::size_t left_out = 0;               ///< invalid ones, if there are valid ones
    Load load;
    std::string name;  ///< of the basis
  };
  Runs runs_of(std::string_view strategy, const Requirements& requirements) const;

  /// The run of the strategy, on the machine that answers come from, with the longest release; null
  /// without runs.
  const results::Run* slowest_release(std::string_view strategy) const;

  struct Violation {
    const results::Run* run = nullptr;
    const Source* source = nullptr;
  };
  /// The first run, of all there are, in which it broke exclusion; null if there is none.
  Violation violation_of(std::string_view strategy) const;

  /// The observed outcome, or the declared one if that is worse.
  FaultReport report(const hazards::Scenario& scenario, const Descriptor& strategy) const;

  template <class Point>
  struct Points {
    std::vector<Point> points;
    std::string source;
  };
  /// Of the first source that has such an experiment.
  Points<results::RenewalPoint> renewal() const;
  Points<results::QuorumPoint> quorum() const;

 private:
  template <class Point>
  Points<Point> points_of() const;

  std::vector<Source> files_, reference_;
};

}  // namespace lockbench::choose
