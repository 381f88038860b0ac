#include "strategies/replication_observer.h"

namespace lockbench {
namespace {

class DeafObserver : public ReplicationObserver {
  void on_acknowledged(Duration, int, int) override {}
};

}  // namespace

std::shared_ptr<ReplicationObserver> make_deaf_replication_observer() {
  return std::make_shared<DeafObserver>();
}

}  // namespace lockbench
