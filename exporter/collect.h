#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "exporter/exporter.h"

namespace lockbench::exporter {

/// Everything that is exported of runs, read on every scrape: nothing of Prometheus is on the hot
/// path.
std::vector<prometheus::MetricFamily> collect(const RunMetrics& metrics, const Facts& facts);

/// What a watch exports: figures by family of locks and by source, from its latest picture. Labels
/// are bounded, and never a lock or an owner.
std::vector<prometheus::MetricFamily> collect(const WatchMetrics& metrics, const Facts& facts);

}  // namespace lockbench::exporter
