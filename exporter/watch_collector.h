#pragma once

#include <prometheus/collectable.h>

#include <memory>
#include <utility>
#include <vector>

#include "exporter/run_metrics.h"
#include "exporter/watch_metrics.h"

namespace lockbench::exporter {

/// What a watch exports: figures by family of locks and by source, from its latest picture. Labels
/// are bounded, and never a lock or an owner. Thread-safe.
class WatchCollector : public prometheus::Collectable {
 public:
  WatchCollector(std::shared_ptr<const WatchMetrics> metrics, Facts facts)
      : metrics_(std::move(metrics)), facts_(std::move(facts)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  std::shared_ptr<const WatchMetrics> metrics_;
  Facts facts_;
};

}  // namespace lockbench::exporter
