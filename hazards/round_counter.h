#pragma once

#include <utility>

#include "strategies/quorum_observer.h"

namespace lockbench::hazards {

/// What an acquisition took of a quorum. For one thread: a play's client has no other that asks.
class RoundCounter : public QuorumObserver {
 public:
  void on_vote(int /*node*/, Vote /*vote*/, Duration /*taken*/, bool /*late*/) override {}
  void on_round(bool split, std::optional<Duration> /*validity*/) override {
    ++rounds_;
    split_ += split ? 1 : 0;
  }
  int take_rounds() { return std::exchange(rounds_, 0); }
  int take_split() { return std::exchange(split_, 0); }

 private:
  int rounds_ = 0, split_ = 0;
};

}  // namespace lockbench::hazards
