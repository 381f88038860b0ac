#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/workload.h"
#include "strategies/lease.h"
#include "strategies/random.h"

namespace lockbench::loadgen {

struct Wanted {
  int key = 0;
  Mode mode = Mode::exclusive;
  bool operator==(const Wanted&) const = default;
};

/// What one section does: takes all these locks, holds them, gives them back, and then thinks.
struct Transaction {
  std::vector<Wanted> locks;  ///< different keys, at least one
  Duration hold{}, think{};
};

/// Which locks the sections of a run ask for. One per run.
class Demand {
 public:
  virtual ~Demand() = default;
  /// The client's next transaction, which begins that long after the load. `out` is reused, so that
  /// nothing is allocated in the long run; `random` is the client's own. Returns false, from then
  /// on, if there is none. Thread-safe; must not wait.
  virtual bool next(int client, Duration since_start, Random& random, Transaction& out) = 0;
};

/// As the workload says; of a trace, what this share takes. The error is one line. next() of a
/// trace throws std::runtime_error if the file was changed meanwhile and cannot be read to its end.
tl::expected<std::unique_ptr<Demand>, std::string> make_demand(const Workload& workload,
                                                               const Share& share = {});

}  // namespace lockbench::loadgen
