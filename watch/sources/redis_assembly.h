#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "watch/source.h"
#include "watch/sources/redis_votes.h"

namespace lockbench::watch {

/// Takes what is seen of each node of a quorum, and passes on what it means together. Thread-safe.
/// The sink must outlive it.
class Assembly {
 public:
  Assembly(Sink& sink, std::string endpoint, std::size_t nodes, std::size_t most_locks)
      : sink_(sink), endpoint_(std::move(endpoint)), votes_(nodes, most_locks) {}

  /// Figures are no better than the node that is seen worst.
  void facts(std::size_t node, const SourceFacts& facts) {
    const std::scoped_lock lock(mutex_);
    facts_[node] = facts;
    const auto accuracy = [](const auto& one) { return one.second.accuracy; };
    SourceFacts all = std::ranges::max_element(facts_, {}, accuracy)->second;
    all.endpoint = endpoint_;
    all.unseen.push_back("votes that last for less than 100 ms without a majority");
    sink_.facts(all);
  }
  void seen(std::size_t node, const Sighting& sighting) {
    const std::scoped_lock lock(mutex_);
    if (auto told = votes_.seen(node, sighting)) sink_.seen(endpoint_, *std::move(told));
  }
  void settle(TimePoint now) {
    const std::scoped_lock lock(mutex_);
    for (Sighting& told : votes_.settled(now)) sink_.seen(endpoint_, std::move(told));
  }
  void proposed(std::string pattern, Shape shape) {
    const std::scoped_lock lock(mutex_);
    sink_.proposed(endpoint_, std::move(pattern), shape);
  }
  /// The rest goes on as long as it is a majority.
  void blind(std::size_t node, TimePoint at, const std::string& reason) {
    const std::scoped_lock lock(mutex_);
    const bool before = votes_.is_blind();
    votes_.blind(node);
    if (!before && votes_.is_blind()) sink_.blind(endpoint_, at, reason);
  }
  void sees(std::size_t node, TimePoint at) {
    const std::scoped_lock lock(mutex_);
    const bool before = votes_.is_blind();
    votes_.sees(node);
    if (before && !votes_.is_blind()) sink_.sees(endpoint_, at);
  }
  void told_all(std::size_t node) {
    const std::scoped_lock lock(mutex_);
    votes_.told_all(node);
  }
  void missed(std::uint64_t changes, std::string reason) {
    const std::scoped_lock lock(mutex_);
    sink_.missed(endpoint_, changes, std::move(reason));
  }

 private:
  std::mutex mutex_;
  Sink& sink_;
  const std::string endpoint_;
  Votes votes_;
  std::map<std::size_t, SourceFacts> facts_;  ///< of each node
};

}  // namespace lockbench::watch
