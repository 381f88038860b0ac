#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/trace.h"
#include "loadgen/run/workload.h"
#include "strategies/random.h"

namespace lockbench::loadgen {

/// Draws the key of a section: uniform, Zipf (key k, from 0, has the exact weight 1/(k+1)^skew), or
/// with a hot set. With skew it has 8 bytes for each key. Read-only after construction, so all
/// clients share it.
class KeyChooser {
 public:
  /// Throws std::invalid_argument unless there is a key, skew is finite and at least 0, and the hot
  /// keys are fewer than all keys and without skew.
  KeyChooser(int keys, double skew, std::optional<HotSet> hot = std::nullopt);

  /// The hot keys are the first ones at the load's start; at each move, as many that follow them.
  int pick(Random& random, Duration since_start = {}) const;

 private:
  int pick_hot(Random& random, Duration since_start) const;

  const int keys_;
  const std::optional<HotSet> hot_;
  std::vector<double> weights_;  ///< with skew: of each key with those before it
};

/// What one section does: takes all these locks, holds them, gives them back, and then thinks.
struct Transaction {
  std::vector<Wanted> locks;  ///< different keys, at least one
  Duration hold{}, think{};
};

/// Which locks the sections of a run ask for: drawn as the workload says, or those of a trace in
/// its order, each transaction for the client that asks next. One per run. Thread-safe.
class Demand {
 public:
  /// Of a trace, what this share takes. The error is one line.
  static tl::expected<std::unique_ptr<Demand>, std::string> make(const Workload& workload,
                                                                 const Share& share = {});

  /// The client's next transaction, which begins that long after the load. `out` is reused, so that
  /// nothing is allocated in the long run; `random` is the client's own. Returns false, from then
  /// on, if there is none. Must not wait.
  bool next(int client, Duration since_start, Random& random, Transaction& out);

 private:
  Demand(const Workload& workload, const Share& share);

  void draw(int client, Duration since_start, Random& random, std::vector<Wanted>& locks) const;

  const Workload& workload_;
  const Share share_;
  const KeyChooser keys_;
  TraceLocks trace_;                     ///< empty: all are drawn
  std::atomic<std::uint64_t> begun_{0};  ///< of the trace, by all shares
};

}  // namespace lockbench::loadgen
