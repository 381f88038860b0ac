#pragma once

#include <memory>

#include "strategies/env.h"

namespace lockbench {

/// Is told how long a lock waited for replicas to acknowledge it. Thread-safe; must not call back.
class ReplicationObserver {
 public:
  virtual ~ReplicationObserver() = default;
  /// Fewer than `wanted`: the lock was given back.
  virtual void on_acknowledged(Duration taken, int acknowledged, int wanted) = 0;
};

/// For those who do not care.
std::shared_ptr<ReplicationObserver> make_deaf_replication_observer();

}  // namespace lockbench
