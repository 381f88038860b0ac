#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loadgen/record/histogram.h"
#include "loadgen/record/metrics.h"
#include "strategies/renewal.h"

namespace lockbench::loadgen {

/// The waits for locks of each client, within 3 %. Each client's thread records its own, without a
/// lock; any thread may read. A client has 5 KiB of buckets, but only used ones take memory: the
/// buckets of one power of two lie side by side for all clients, whose waits are similar.
class ClientWaits {
 public:
  explicit ClientWaits(int clients);

  /// `censored`: the wait was cut off, by a timeout or the end of the run. Above one hour it counts
  /// as one hour.
  void record(int client, Duration wait, bool censored) noexcept;

  /// Waits of about the same length.
  struct Bucket {
    std::uint32_t index = 0;
    bool censored = false;
    std::uint32_t waits = 0;
  };
  /// This client's filled buckets.
  std::vector<Bucket> buckets_of(int client) const;
  /// Adds waits recorded in another process; on the thread that records the client's. Ignores an
  /// impossible bucket.
  void add(int client, const Bucket& more) noexcept;

  /// Percentiles over all clients, with equal weights, and those of the worst client. A client
  /// without waits does not count; nothing if none has any.
  std::optional<results::ByClient> by_client() const;

 private:
  using Layout = LogLinearLayout<4>;
  static constexpr std::size_t kBuckets = Layout::index(Layout::kHighest) + 1;
  static constexpr std::size_t kRowBuckets = Layout::kSubBuckets;
  static constexpr std::size_t kRows = (kBuckets + kRowBuckets - 1) / kRowBuckets;

  /// A client's buckets of one power of two.
  using Row = std::array<std::atomic<std::uint32_t>, kRowBuckets>;
  static_assert(sizeof(Row) == kCacheLine);

  std::atomic<std::uint32_t>& bucket(int client, std::size_t index, bool censored) const;

  const int clients_;
  Zeros<Row> rows_;
};

enum class ClientState : std::uint8_t { idle, waiting, holding };

/// Sums over clients, or one client's share of them.
using Counts = ByKind<Count, std::uint64_t>;

inline constexpr std::array kVotes{Vote::granted, Vote::refused, Vote::failed};

/// One client's figures. Only its own thread writes, without a lock. Any thread may read at any
/// time; the numbers may be of slightly different moments.
class alignas(64) ClientRecord {
 public:
  void add(Phase phase, const Counts& more);
  /// The same for a single count, below kClientCounts.
  void add(Phase phase, Count what, std::uint64_t more = 1);
  Counts counts(Phase phase) const;
  std::uint64_t total(Count what, Phase phase) const;

  std::atomic<ClientState> state{ClientState::idle};
  /// Intended start of the wait under way, or of the next one; min(): about to be drawn; max():
  /// none.
  std::atomic<TimePoint> since{TimePoint::max()};

 private:
  using Sums = std::array<std::atomic<std::uint64_t>, kClientCounts>;
  std::array<Sums, kPhases.size()> sums_{};
};

/// All measurements of one run, while it runs. The writers are the clients and their shared
/// services; recording takes no lock and allocates nothing, except for new failures, which are few.
/// Readers merge snapshots without stalling the writers. Thread-safe.
class Recorder {
 public:
  /// `nodes`: of a quorum; 0 for a lock without one.
  explicit Recorder(int clients, int nodes = 0);

  /// One of a quorum's nodes, by its answers.
  struct Node {
    std::array<std::atomic<std::uint64_t>, kVotes.size()> votes{};
    /// Response times of the awaited answers. A late answer's time is unknown.
    std::array<ShardedHistogram, kVotes.size()> taken;

    std::uint64_t count(Vote vote) const {
      return votes[static_cast<std::size_t>(vote)].load(std::memory_order_relaxed);
    }
    const ShardedHistogram& taken_by(Vote vote) const {
      return taken[static_cast<std::size_t>(vote)];
    }
  };
  struct Histograms : ByKind<Timing, ShardedHistogram> {
    std::vector<Node> nodes;
  };

  Histograms& histograms(Phase phase) { return histograms_[static_cast<std::size_t>(phase)]; }
  const Histograms& histograms(Phase phase) const {
    return histograms_[static_cast<std::size_t>(phase)];
  }
  ClientRecord& client(int number) { return clients_[static_cast<std::size_t>(number)]; }
  const ClientRecord& client(int number) const {
    return clients_[static_cast<std::size_t>(number)];
  }
  /// The samples that censor a timing.
  HistogramSnapshot censored(Phase phase, Timing timing) const;

  /// Of the measured phase.
  ClientWaits& waits() { return waits_; }
  const ClientWaits& waits() const { return waits_; }

  int client_count() const { return static_cast<int>(clients_.size()); }
  /// Of the clients and the services.
  Counts totals(Phase phase) const;
  /// Of all phases.
  Counts totals() const;
  /// Of a single count: far cheaper with many clients.
  std::uint64_t total(Count what, Phase phase) const;
  std::uint64_t total(Count what) const;
  std::uint64_t clients_in(ClientState state) const;
  std::uint64_t outcome_count(Phase phase, AcquireOutcome outcome) const;
  /// Acknowledgements that the latest wait for replicas required.
  std::uint64_t replicas_wanted() const { return replicas_wanted_.load(std::memory_order_relaxed); }

  /// A store's times to answer this command, in the measured phase. The reference stays valid.
  /// Takes a lock, so a client asks once for each name.
  ShardedHistogram& command(std::string_view name);
  /// Of commands answered at least once.
  std::map<std::string, HistogramSnapshot> command_snapshots() const;

  /// Of the services alone.
  Counts service_counts(Phase phase) const;

  /// For the services, which belong to no client.
  void add(Phase phase, Count what, std::uint64_t more = 1);
  void add(Phase phase, const Counts& more);
  void renewal(Phase phase, const RenewalReport& report);
  void vote(Phase phase, int node, Vote vote, Duration taken, bool late = false);
  void round(Phase phase, bool split, std::optional<Duration> validity);
  void replicas_waited(Phase phase, Duration taken, int acknowledged, int wanted);

  /// Counts distinct messages, and returns the reason. In an outage thousands of clients fail
  /// alike: a known message takes no lock, and is not searched for its reason again.
  FailureReason failure(const std::string& message, std::uint64_t times = 1);
  /// Why the latest lock was refused, which is no failure of the store. As cheap.
  void refusal(const std::string& message);
  std::map<std::string, std::uint64_t> failure_counts() const;
  void want_replicas(std::uint64_t replicas) {
    replicas_wanted_.store(replicas, std::memory_order_relaxed);
  }
  /// The latest message of each reason; empty if there is none.
  ByKind<FailureReason, std::string> latest_failures() const;
  /// The most frequent first.
  std::vector<std::string> failures() const;

 private:
  std::vector<ClientRecord> clients_;
  ClientWaits waits_;
  std::array<ByKind<Count, std::atomic<std::uint64_t>>, kPhases.size()> services_;
  std::array<Histograms, kPhases.size()> histograms_;
  mutable std::mutex commands_mutex_;
  std::map<std::string, std::unique_ptr<ShardedHistogram>, std::less<>> commands_;
  std::atomic<std::uint64_t> replicas_wanted_{0};
  struct Failure {
    std::string message{};  ///< constant once it is listed, as is `reason`
    FailureReason reason = FailureReason::other;
    std::atomic<std::uint64_t> times{0};
  };
  /// Bounded, as a store may put a number into each message.
  static constexpr std::size_t kDistinctFailures = 16;

  /// The entry of this message, listed if there is room; the first entry otherwise.
  Failure& entry_of(const std::string& message);
  Failure* find_listed(std::string_view message);
  void keep_latest(FailureReason reason, const Failure& entry, const std::string& message);

  std::array<Failure, 1 + kDistinctFailures> failures_;  ///< the first: all that are not listed
  std::atomic<std::size_t> listed_{1};                   ///< entries in use
  /// By the message's reason; null: none yet. The first entry: its text is in `unlisted_`.
  ByKind<FailureReason, std::atomic<const Failure*>> latest_;
  mutable std::mutex failures_mutex_;  ///< to list a message, and for what follows
  ByKind<FailureReason, std::string> unlisted_;
};

}  // namespace lockbench::loadgen
