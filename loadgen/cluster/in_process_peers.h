#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "loadgen/cluster/peers.h"

namespace lockbench::loadgen::cluster {

/// Ranks within one process: for a run of one rank, and for tests. Each rank may be on a thread of
/// its own.
class InProcessRanks {
 public:
  explicit InProcessRanks(int size);

  /// Those of one rank; may outlive this.
  std::unique_ptr<Peers> rank(int rank) const;
  /// From now on it neither sends nor receives.
  void kill(int rank);

 private:
  friend class InProcessPeers;
  struct Box {
    std::mutex mutex;
    std::deque<Message> messages;
    std::atomic<bool> dead{false};
  };
  std::shared_ptr<std::vector<std::unique_ptr<Box>>> boxes_;
};

}  // namespace lockbench::loadgen::cluster
