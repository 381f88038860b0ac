#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
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
      : sink_(sink), endpoint_(std::move(endpoint)), votes_(nodes, most_locks) {
    for (std::size_t i = 0; i < nodes; ++i) nodes_.emplace_back(*this, i);
  }
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  /// What the source of one node tells.
  class Node : public Sink {
   public:
    Node(Assembly& all, std::size_t index) : all_(all), index_(index) {}

    /// Figures are no better than the node that is seen worst.
    void facts(const SourceFacts& facts) override {
      const std::scoped_lock lock(all_.mutex_);
      all_.facts_[index_] = facts;
      const auto accuracy = [](const auto& one) { return one.second.accuracy; };
      SourceFacts worst = std::ranges::max_element(all_.facts_, {}, accuracy)->second;
      worst.endpoint = all_.endpoint_;
      worst.unseen.push_back("votes that last for less than 100 ms without a majority");
      all_.sink_.facts(worst);
    }
    void seen(const std::string& /*endpoint*/, Sighting sighting) override {
      const std::scoped_lock lock(all_.mutex_);
      if (auto told = all_.votes_.seen(index_, sighting)) {
        all_.sink_.seen(all_.endpoint_, *std::move(told));
      }
    }
    void proposed(std::string pattern) override { all_.sink_.proposed(std::move(pattern)); }
    /// The rest goes on as long as it is a majority.
    void blind(const std::string& /*endpoint*/, TimePoint at, std::string reason) override {
      const std::scoped_lock lock(all_.mutex_);
      const bool before = all_.votes_.is_blind();
      all_.votes_.blind(index_);
      if (!before && all_.votes_.is_blind()) {
        all_.sink_.blind(all_.endpoint_, at, std::move(reason));
      }
    }
    void sees(const std::string& /*endpoint*/, TimePoint at) override {
      const std::scoped_lock lock(all_.mutex_);
      const bool before = all_.votes_.is_blind();
      all_.votes_.sees(index_);
      if (before && !all_.votes_.is_blind()) all_.sink_.sees(all_.endpoint_, at);
    }
    void told_all(const std::string& /*endpoint*/) override {
      const std::scoped_lock lock(all_.mutex_);
      all_.votes_.told_all(index_);
    }
    void missed(const std::string& /*endpoint*/, std::uint64_t changes,
                std::string reason) override {
      const std::scoped_lock lock(all_.mutex_);
      all_.sink_.missed(all_.endpoint_, changes, std::move(reason));
    }

   private:
    Assembly& all_;
    const std::size_t index_;
  };

  Node& node(std::size_t index) { return nodes_.at(index); }

  void settle(TimePoint now) {
    const std::scoped_lock lock(mutex_);
    for (Sighting& told : votes_.settled(now)) sink_.seen(endpoint_, std::move(told));
  }

 private:
  std::mutex mutex_;
  Sink& sink_;
  const std::string endpoint_;
  Votes votes_;
  std::map<std::size_t, SourceFacts> facts_;  ///< of each node
  std::deque<Node> nodes_;
};

}  // namespace lockbench::watch
