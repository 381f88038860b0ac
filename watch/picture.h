#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loadgen/record/histogram.h"
#include "results/file/model.h"
#include "strategies/duration.h"
#include "watch/sketches.h"
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
  std::uint64_t ended = 0;                  ///< holdings
  std::uint64_t expired_after_renewal = 0;  ///< expired holdings that had been renewed at least
                                            ///< twice
  std::uint64_t owners = 0;  ///< estimated number of distinct owners; with a new token for each
                             ///< acquisition, each counts as an owner
  /// The fewest waiters in each of the last periods of 10 s, the oldest first. Nothing: not
  /// watched for that long.
  std::optional<Lows::Parts> queue;
  std::uint64_t acquired_meanwhile = 0;  ///< in these periods and the present one
  /// Its server cannot be seen, or for less than a TTL: what is held now is not known.
  bool blind = false;
  std::string most_waited_for;  ///< the lock with the most waiters now; empty: nobody waits
  /// Holdings that were too long, and that were no longer renewed, since the watch began.
  std::uint64_t held_long = 0, renewals_stopped = 0;
  std::optional<Duration> long_from;  ///< the bound that the longest of the long holds exceeds
  std::map<std::string, std::string, std::less<>> latest_lock;  ///< by kind of finding
};

struct Finding : results::ObservedFinding {
  bool now = false;  ///< a state that lasts; else a count of events
};

struct SourcePicture {
  SourceFacts facts;
  bool sees = true;
  std::string blind_reason;
  double blind_seconds = 0;  ///< in total
  std::uint64_t outages = 0;
  double blind_for = 0;  ///< of the present outage; 0: it sees
  std::uint64_t missed = 0, commands = 0;
  std::uint64_t no_locks = 0;  ///< keys that match a pattern but are no locks, estimated
  std::string a_no_lock;       ///< one of them
  std::string missed_reason;
};

struct Picture {
  std::string deployment;  ///< its name; empty: none
  TimePoint at{};
  Duration watched{};
  std::vector<SourcePicture> sources;
  std::vector<FamilyPicture> families;  ///< bounded: further ones share the family "other"
  std::vector<LockPicture> worst;       ///< bounded, the worst first
  std::vector<Finding> findings;        ///< since the watch began, also those that are over
  std::vector<std::string> proposals;   ///< patterns of keys that look like locks
  std::uint64_t locks_unfollowed = 0;   ///< not followed for want of memory
};

/// "at_least": as the result file names it.
std::string_view name_of(Accuracy accuracy);

struct ShapeFacts {
  std::string_view name;      ///< "etcd_queue": as the result file names it
  bool has_ttl = false;       ///< usually; with sequence nodes: no_ttl means that they are kept
  bool of_session = false;    ///< it ends with its holder's session
  bool key_for_each = false;  ///< each contender has its own key: nobody writes over the holder's
};
const ShapeFacts& facts_of(Shape shape);

/// The findings from a picture's sources, families and worst locks, the most harmful first. At most
/// one for each kind, server and family. Without times: they need the pictures before.
std::vector<Finding> findings_of(const Picture& picture);

/// When each finding was first and last seen. Bounded as the families are. Not thread-safe.
class FindingLog {
 public:
  /// A finding is over once it was not seen for so long.
  static constexpr Duration kOverAfter = std::chrono::minutes(10);

  /// Takes the findings of a picture at `at`; returns all so far, those that are over last. A count
  /// is seen when it grows, a state while it lasts.
  std::vector<Finding> take(std::vector<Finding> found, TimePoint at, TimePoint began);

 private:
  std::vector<Finding> known_;
};

/// Adds the picture to a result that already has environment and options. Owners are hashes.
void add_to(results::Result& result, const Picture& picture);

}  // namespace lockbench::watch
