#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "loadgen/cluster/reports.h"
#include "loadgen/record/contention.h"
#include "loadgen/record/lock_log.h"
#include "loadgen/run/worker.h"

namespace lockbench::loadgen::cluster {

/// Follows the locks of a run through all ranks, from what their clients did, by the time of
/// rank 0: handoffs, contention, streaks, overlaps and fencing numbers that another rank's show to
/// be too low, which no rank sees alone. Adds what it finds to the run of rank 0. Two sections of
/// different ranks overlap if they do so by more than both clocks may be wrong; if the clocks
/// cannot tell, the later one counts as undecided. Likewise a number is too low only if a higher
/// one was granted for certain before it was asked for. For one thread.
class Replay {
 public:
  Replay(RunShared& run, int ranks)
      : run_(run),
        ranks_(static_cast<std::size_t>(ranks)),
        contention_(run.handoff, run.recorder) {}

  /// What a rank's clients did; times are those of rank 0, as `clock` had it then. All that
  /// happened there before `complete_until` has been told. What is no part of the run is ignored.
  void add(int rank, const std::vector<LockEvent>& events, TimePoint complete_until,
           const ClockReport& clock);
  /// This rank tells nothing any more.
  void lose(int rank);
  /// Follows what is known of all ranks. The end: nobody tells anything any more.
  void advance();
  void finish(TimePoint now);

 private:
  /// By the time of rank 0, which the rank of the event took to be ahead by `offset`.
  struct ReceivedEvent {
    LockEvent event;
    Duration offset{}, bound{};
    int rank = 0;
  };
  struct Rank {
    std::vector<ReceivedEvent> events;
    TimePoint complete_until = TimePoint::min();
    bool lost = false;
  };
  struct Section {
    TimePoint granted, left;
    Duration granted_offset{}, left_offset{};
    Duration bound{};  ///< the wider one of its grant's and its end's
    int rank = 0, client = 0;
    bool shared = false, closed = false;
    bool overlaps = false, undecided = false;
  };
  /// A fencing number that was granted.
  struct Number {
    TimePoint at;
    Duration bound{};
    AcquireMark mark;
  };
  struct Key {
    std::deque<Section> sections;  ///< by their grants
    std::deque<Number> numbers;    ///< that are not in `mark` yet, as they came
    AcquireMark mark;
    TimePoint conflict_until = TimePoint::min();
    int streak_client = -1;
    std::uint64_t streak = 0;
    bool measured = false;
  };
  struct Client {
    int rank = 0, key = 0;
    Contention::Pending pending;
    AcquireMark mark;  ///< when it began to wait
  };

  bool is_of_run(const LockEvent& event) const;
  void follow(const ReceivedEvent& received);
  void open(Key& key, const ReceivedEvent& received);
  /// What a lost rank held and waited for, when all that it told has been followed.
  void forget_open(int rank, TimePoint now);
  void count_streak(Key& key, const LockEvent& event);
  /// The highest number that was granted for certain before somebody asked for the lock.
  AcquireMark mark_at(Key& key, TimePoint asked) const;
  void check_fencing(Key& key, const Client& client, const ReceivedEvent& received);
  static void close(Key& key, const ReceivedEvent& received);
  /// Judges the sections that nothing can overlap any more that is not known yet.
  void settle(Key& key, TimePoint known_until);
  void settle_all(TimePoint known_until);
  void judge(Key& key, const Section& one, Section& later);

  RunShared& run_;
  std::vector<Rank> ranks_;
  Duration widest_{};  ///< of all bounds
  std::unordered_map<int, Key> keys_;
  std::unordered_set<int> busy_;  ///< keys with sections
  std::unordered_map<int, Client> clients_;
  Contention contention_;
  AuditTotals found_;
};

}  // namespace lockbench::loadgen::cluster
