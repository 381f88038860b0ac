#pragma once

#include "strategies/duration.h"

namespace lockbench {

/// Sees how long a lock waited for replicas to acknowledge it; this base class ignores it.
/// Thread-safe; must not call back.
class ReplicationObserver {
 public:
  virtual ~ReplicationObserver() = default;
  /// With fewer than `wanted`, the lock was given back.
  virtual void on_acknowledged(Duration /*taken*/, int /*acknowledged*/, int /*wanted*/) {}
};

}  // namespace lockbench
