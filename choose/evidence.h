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
