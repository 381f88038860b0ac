#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loadgen/record/histogram.h"
#include "strategies/duration.h"
#include "watch/families.h"
#include "watch/picture.h"
#include "watch/source.h"

namespace lockbench::watch {

struct LedgerOptions {
  std::uint64_t most_locks = 1'000'000;  ///< that are followed at once
  std::size_t most_families = 50;        ///< further ones share "other"
  /// Holdings longer than this are long; nothing: than ten times the family's p99.
  std::optional<Duration> held_longer;
  /// Of owners' hashes; empty: a random one, so that hashes of two watches differ.
  std::string salt{};
};

/// What was used of the locks, for the workload that follows from it. Bounded like the ledger.
struct Usage {
  Duration watched{};  ///< without the time in which no source saw
  std::uint64_t acquisitions = 0;
  std::vector<std::uint64_t> by_lock;    ///< acquisitions of each lock that is still known
  std::uint64_t locks = 0;               ///< distinct ones
  std::uint64_t owners = 0;              ///< distinct ones, estimated
  std::uint64_t most_at_once = 0;        ///< clients that held or waited
  loadgen::HistogramSnapshot hold, ttl;  ///< ttl: at the grant
  std::uint64_t shared = 0;              ///< acquisitions in a shared mode
  /// Of the acquisitions in each second: the variance as a multiple of the mean; nothing for too
  /// few seconds. 1: Poisson.
  std::optional<double> dispersion;
  bool waits_known = false;
  bool queued = false;  ///< the store serves waiters in order
  Accuracy accuracy = Accuracy::sampled;
};

/// Derives from sightings what happens to locks: holdings, how they ended, waits. Thread-safe.
/// Owners are kept as hashes only. Memory is bounded by the options: beyond `most_locks`, one that
/// was free for ten seconds is forgotten for a new one; if there is none, new ones are only
/// counted.
class Ledger : public Sink {
 public:
  explicit Ledger(LedgerOptions options = {}, Families families = {});
  ~Ledger() override;

  /// The watch begins; without this, with what a source tells first.
  void begin(TimePoint at);

  void facts(const SourceFacts& facts) override;
  void seen(const std::string& endpoint, Sighting sighting) override;
  void proposed(std::string pattern) override;
  void blind(const std::string& endpoint, TimePoint at, std::string reason) override;
  void sees(const std::string& endpoint, TimePoint at) override;
  void missed(const std::string& endpoint, std::uint64_t changes, std::string reason) override;

  /// Everything that is known, with findings. `now` must not lie before earlier sightings. Commands
  /// of the sources are 0: only they know. Sources are held up for at most a millisecond at a time.
  Picture read(TimePoint now);
  Usage usage(TimePoint now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockbench::watch
