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

// A snapshot of all that a watch knows, in the terms of the result file. Plain data and a copy:
// reading it never holds up a source.
namespace lockbench::watch {

using Counts = results::ObservedCounts;
using Figures = results::ObservedFigures;

/// One of the worst locks.
struct LockPicture : results::ObservedLock {
  Figures figures;
};

struct FamilyPicture : results::Observed {
  loadgen::HistogramSnapshot holds, waits;  ///< behind `hold` and `wait`
  Accuracy sight = Accuracy::sampled;       ///< behind `accuracy`
  std::uint64_t expired_after_renewal = 0;  ///< expired holdings that had been renewed at least
                                            ///< twice
  std::uint64_t owners = 0;  ///< estimated number of distinct owners; with a new token for each
                             ///< acquisition, each counts as an owner
  /// The fewest waiters in each of the last three periods of 10 s, the oldest first. Nothing: not
  /// watched for that long.
  std::optional<std::array<std::uint64_t, 3>> queue;
  std::string most_waited_for;  ///< the lock with the most waiters now; empty: nobody waits
};

struct Finding : results::ObservedFinding {
  std::string endpoint;  ///< of the source, for `blind`
};

struct SourcePicture {
  SourceFacts facts;
  bool sees = true;
  std::string blind_reason;
  double blind_seconds = 0;  ///< in total
  double blind_for = 0;      ///< of the present outage; 0: it sees
  std::uint64_t missed = 0, commands = 0;
  std::string missed_reason;
};

struct Picture {
  TimePoint at{};
  Duration watched{};
  std::vector<SourcePicture> sources;
  std::vector<FamilyPicture> families;  ///< bounded: further ones share the family "other"
  std::vector<LockPicture> worst;       ///< bounded, the worst first
  std::vector<Finding> findings;
  std::vector<std::string> proposals;  ///< patterns of keys that look like locks
  std::uint64_t locks_unfollowed = 0;  ///< not followed for want of memory
};

/// "at_least", "etcd_queue": as the result file names them.
std::string_view name_of(Accuracy accuracy);
std::string_view name_of(Shape shape);

/// The findings from a picture's sources, families and worst locks, the most harmful first. At most
/// one for each kind and family.
std::vector<Finding> findings_of(const Picture& picture);

/// Adds the picture to a result that already has environment and options. Owners are hashes.
void add_to(results::Result& result, const Picture& picture);

}  // namespace lockbench::watch
