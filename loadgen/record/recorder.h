#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "loadgen/record/histogram.h"
#include "loadgen/record/metered_env.h"
#include "strategies/lock_strategy.h"
#include "strategies/quorum_observer.h"
#include "strategies/renewal.h"

namespace lockbench::loadgen {

/// What belongs to the warm-up (unmeasured), or was granted while the run was being ended, is kept
/// apart: seen in the series, in no other figure of the run.
enum class Phase { unmeasured, measured, ending };
inline constexpr std::array kPhases{Phase::unmeasured, Phase::measured, Phase::ending};

enum class ClientState : std::uint8_t { idle, waiting, holding };

inline constexpr std::array kOutcomes{AcquireOutcome::acquired, AcquireOutcome::timed_out,
                                      AcquireOutcome::refused,  AcquireOutcome::failed,
                                      AcquireOutcome::unknown,  AcquireOutcome::abandoned};

/// What is counted for each client, besides the histograms.
enum class Count : std::size_t {
  sections,
  shared_sections,
  attempts,
  granted_attempts,  ///< of the acquisitions that were granted, like the three parts of their time
  commands,          ///< the lock's own, those of services apart
  wakes,             ///< waits for the lock that were ended by a wake-up
  round_trip_ns,
  backoff_ns,
  notified_ns,
  leases_lost,
  releases_not_owner,
  releases_failed,
  stale_rejected,     ///< by a counter that checks fencing numbers: readings and writes
  resource_failures,  ///< the protected counter could not be read or written
  kinds,
};

/// Sums over clients, or one client's share of them.
struct Counts {
  std::array<std::uint64_t, static_cast<std::size_t>(Count::kinds)> sums{};
  Duration longest_wait{};

  std::uint64_t& operator[](Count what) { return sums[static_cast<std::size_t>(what)]; }
  std::uint64_t operator[](Count what) const { return sums[static_cast<std::size_t>(what)]; }
  Counts& operator+=(const Counts& more);
};

/// What the services that clients share do for them: renewal and notification.
struct ServiceCounts {
  std::uint64_t commands = 0;  ///< to be added to those of the clients
  std::uint64_t renewals = 0, renewals_failed = 0, renewals_refused = 0;
  std::uint64_t renewal_commands = 0;
};

inline constexpr std::array kVotes{Vote::granted, Vote::refused, Vote::failed};

/// What the nodes of a quorum said.
struct QuorumCounts {
  std::uint64_t rounds = 0, split_votes = 0;
};

/// What became of waiting for replicas.
struct ReplicationCounts {
  std::uint64_t refusals = 0;  ///< too few acknowledged in time
  std::uint64_t wanted = 0;    ///< acknowledgements, of the latest wait
};

/// One client's figures. Written by its own thread only, without a lock; readers may look at any
/// time and see each number whole, though not all of the same instant.
class alignas(64) ClientRecord {
 public:
  void add(Phase phase, const Counts& more);
  Counts counts(Phase phase) const;

  std::atomic<ClientState> state{ClientState::idle};

 private:
  struct Numbers {
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Count::kinds)> sums{};
    std::atomic<Duration::rep> longest_wait_ns{0};
  };
  std::array<Numbers, kPhases.size()> numbers_;
};

/// Everything that one run measures, while it runs. Writers are the clients: recording takes no
/// lock and allocates nothing (failures apart, which are rare). Readers merge snapshots without
/// stalling them.
class Recorder {
 public:
  /// `nodes`: of a quorum; 0 for a lock that has none.
  explicit Recorder(int clients, int nodes = 0);

  struct Histograms {
    /// From the intended start, by outcome.
    std::array<ShardedHistogram, kOutcomes.size()> acquire;
    ShardedHistogram acquire_service;  ///< granted, from the actual start
    ShardedHistogram hold, release, handoff;
    ShardedHistogram schedule_lag;  ///< actual start after intended start, in open loop
    ShardedHistogram wake_lag;      ///< the part of it that is the generator's own: waking up late
    ShardedHistogram loss_to_knowledge;
    ShardedHistogram renewal_duration, renewal_slip, renewal_margin;
    /// One of a quorum's nodes, by what it said.
    struct Node {
      std::array<std::atomic<std::uint64_t>, kVotes.size()> votes{};
      /// How long those took that were waited for: when a late one came is not known.
      std::array<ShardedHistogram, kVotes.size()> taken;

      std::uint64_t count(Vote vote) const {
        return votes[static_cast<std::size_t>(vote)].load(std::memory_order_relaxed);
      }
      const ShardedHistogram& taken_by(Vote vote) const {
        return taken[static_cast<std::size_t>(vote)];
      }
    };
    std::vector<Node> nodes;
    ShardedHistogram validity;      ///< left at the grant of a quorum
    ShardedHistogram replica_wait;  ///< for the acknowledgements of replicas

    ShardedHistogram& acquire_with(AcquireOutcome outcome) {
      return acquire[static_cast<std::size_t>(outcome)];
    }
    const ShardedHistogram& acquire_with(AcquireOutcome outcome) const {
      return acquire[static_cast<std::size_t>(outcome)];
    }
  };

  Histograms& histograms(Phase phase) { return histograms_[static_cast<std::size_t>(phase)]; }
  const Histograms& histograms(Phase phase) const {
    return histograms_[static_cast<std::size_t>(phase)];
  }
  ClientRecord& client(int number) { return clients_[static_cast<std::size_t>(number)]; }

  int client_count() const { return static_cast<int>(clients_.size()); }
  Counts client_counts(int number, Phase phase) const {
    return clients_[static_cast<std::size_t>(number)].counts(phase);
  }
  Counts totals(Phase phase) const;
  std::uint64_t clients_in(ClientState state) const;
  std::uint64_t outcome_count(Phase phase, AcquireOutcome outcome) const;

  /// Thread-safe, as services are nobody's own.
  void service_command(Phase phase);
  void renewal(Phase phase, const RenewalReport& report);
  ServiceCounts service_counts(Phase phase) const;
  void vote(Phase phase, int node, Vote vote, Duration taken, bool late = false);
  void round(Phase phase, bool split, std::optional<Duration> validity);
  QuorumCounts quorum_counts(Phase phase) const;
  void replicas_waited(Phase phase, Duration taken, int acknowledged, int wanted);
  ReplicationCounts replication_counts(Phase phase) const;

  /// Keeps distinct messages and how often each came. Takes a lock: for failures only.
  void failure(const std::string& message);
  /// The most frequent first.
  std::vector<std::string> failures() const;

 private:
  struct ServiceNumbers {
    std::atomic<std::uint64_t> commands{0};
    std::array<std::atomic<std::uint64_t>, 3> renewals{};  ///< by RenewalAnswer
    std::atomic<std::uint64_t> renewal_commands{0};
    std::atomic<std::uint64_t> rounds{0}, split_votes{0};
    std::atomic<std::uint64_t> replica_refusals{0}, replicas_wanted{0};
  };

  std::vector<ClientRecord> clients_;
  std::array<ServiceNumbers, kPhases.size()> services_;
  std::array<Histograms, kPhases.size()> histograms_;
  mutable std::mutex failures_mutex_;
  std::map<std::string, std::uint64_t> failures_;
};

}  // namespace lockbench::loadgen
