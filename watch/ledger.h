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
  std::uint64_t most_locks = 1'000'000;  ///< followed at the same time
  std::size_t most_families = 50;        ///< further ones share "other"
  /// Longer holdings count as long. Nothing: the bound is what is usual in the family, or without
  /// holdings to compare with an hour, unless the holder shows that it is alive.
  std::optional<Duration> held_longer;
  /// Patterns of locks that end by expiry by design, such as schedules.
  std::vector<std::string> never_released{};
  bool shows_owners = false;  ///< keep owners in clear beside their hashes
  /// For hashing owners. Empty: random, so that the hashes of two watches differ.
  std::string salt{};
};

/// How the locks were used, to derive a workload from. Bounded like the ledger.
struct Usage {
  Duration watched{};  ///< less the blind time of the source that was blind least
  std::uint64_t acquisitions = 0;
  std::vector<std::uint64_t> by_lock;    ///< acquisitions of each lock that is still known
  std::uint64_t locks = 0;               ///< distinct ones
  std::uint64_t owners = 0;              ///< distinct ones, estimated
  std::uint64_t most_at_once = 0;        ///< most clients that held or waited
  loadgen::HistogramSnapshot hold, ttl;  ///< ttl: at the grant
  std::uint64_t shared = 0;              ///< acquisitions in a shared mode
  /// Variance of the acquisitions per second, divided by their mean; 1: Poisson. Nothing if too few
  /// seconds were seen.
  std::optional<double> dispersion;
  bool waits_known = false;
  bool queued = false;  ///< the store serves waiters in order
  Accuracy accuracy = Accuracy::sampled;
};

/// Derives from sightings the events of locks: holdings, how they ended, waits. Thread-safe. Owners
/// are kept as hashes only. Memory is bounded by the options: beyond `most_locks`, a new lock
/// replaces one that has been free for ten seconds; if there is none, it is only counted.
class Ledger : public Sink {
 public:
  explicit Ledger(LedgerOptions options = {}, Families families = {});
  ~Ledger() override;

  /// Starts the watch; without this call it starts with the first report of a source.
  void begin(TimePoint at);

  void facts(const SourceFacts& facts) override;
  void seen(const std::string& endpoint, Sighting sighting) override;
  void proposed(std::string pattern) override;
  void blind(const std::string& endpoint, TimePoint at, std::string reason) override;
  void sees(const std::string& endpoint, TimePoint at) override;
  void missed(const std::string& endpoint, std::uint64_t changes, std::string reason) override;
  void no_lock(const std::string& endpoint, const std::string& key) override;
  void seen_until(const std::string& endpoint, TimePoint at) override;

  /// All figures and findings. `now` must not lie before earlier sightings. SourcePicture::commands
  /// stays 0: only the sources know it. Holds up sources for at most a millisecond at a time.
  Picture read(TimePoint now);
  Usage usage(TimePoint now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockbench::watch
