#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exporter/facts.h"
#include "exporter/run_book.h"

namespace lockbench::exporter {

/// Everything that lockbench exports, read from a book whenever somebody asks: nothing of
/// Prometheus is on the clients' way. Thread-safe.
class Collector : public prometheus::Collectable {
 public:
  Collector(std::shared_ptr<const RunBook> book, Facts facts)
      : book_(std::move(book)), facts_(std::move(facts)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  std::shared_ptr<const RunBook> book_;
  Facts facts_;
};

}  // namespace lockbench::exporter
