#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exporter/run_metrics.h"

namespace lockbench::exporter {

/// Everything that lockbench exports, read from the run metrics on every scrape: nothing of
/// Prometheus is on the hot path. Thread-safe.
class Collector : public prometheus::Collectable {
 public:
  Collector(std::shared_ptr<const RunMetrics> metrics, Facts facts)
      : metrics_(std::move(metrics)), facts_(std::move(facts)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  std::shared_ptr<const RunMetrics> metrics_;
  Facts facts_;
};

}  // namespace lockbench::exporter
