#include "strategies/quorum_observer.h"

namespace lockbench {
namespace {

class DeafObserver : public QuorumObserver {
  void on_vote(int, Vote, Duration, bool) override {}
  void on_round(bool, std::optional<Duration>) override {}
};

}  // namespace

std::shared_ptr<QuorumObserver> make_deaf_quorum_observer() {
  return std::make_shared<DeafObserver>();
}

}  // namespace lockbench
