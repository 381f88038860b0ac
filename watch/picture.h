#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loadgen/record/histogram.h"
#include "results/file/model.h"
#include "strategies/duration.h"
#include "watch/source.h"

// What a watch knows at one time, in the terms of the result file. Plain data: a picture is a copy,
// and reading one never holds up a source.
namespace lockbench::watch {

using Counts = results::ObservedCounts;
using Figures = results::ObservedFigures;

/// One lock, of the few that hurt most.
struct LockPicture : results::ObservedLock {
  Figures figures;
};

struct FamilyPicture : results::Observed {
  loadgen::HistogramSnapshot holds, waits;  ///< behind `hold` and `wait`
  Accuracy sight = Accuracy::sampled;       ///< behind `accuracy`
  std::uint64_t expired_after_renewal = 0;  ///< of the expired ones, those renewed at least twice
  std::uint64_t owners = 0;  ///< distinct ones, estimated; a lock with a new token for each
                             ///< acquisition shows as many
  /// Waiters over the last half minute: the fewest in each third of it, the oldest first. Nothing:
  /// not watched for so long.
  std::optional<std::array<std::uint64_t, 3>> queue;
  std::string most_waited_for;  ///< the lock with most waiters now; empty: none
};

struct Finding : results::ObservedFinding {
  std::string endpoint;  ///< of a source that does not see
};

struct SourcePicture {
  SourceFacts facts;
  bool sees = true;
  std::string blind_reason;
  double blind_seconds = 0;  ///< in total
  std::uint64_t missed = 0, commands = 0;
  std::string missed_reason;
};

struct Picture {
  TimePoint at{};
  Duration watched{};
  std::vector<SourcePicture> sources;
  std::vector<FamilyPicture> families;  ///< a bounded number: the rest is in the family "other"
  std::vector<LockPicture> worst;       ///< a bounded number, those that hurt most first
  std::vector<Finding> findings;
  std::vector<std::string> proposals;  ///< patterns that look like locks
  std::uint64_t locks_unfollowed = 0;  ///< beyond the memory's bound
};

/// "at_least", "etcd_queue": as the result file names them.
std::string_view name_of(Accuracy accuracy);
std::string_view name_of(Shape shape);

/// What follows from a picture's sources, families and worst locks, what hurts most first. One
/// finding for each kind and family.
std::vector<Finding> findings_of(const Picture& picture);

/// Adds what was seen to a result, which has the environment and options already. Owners are
/// hashes.
void add_to(results::Result& result, const Picture& picture);

}  // namespace lockbench::watch
