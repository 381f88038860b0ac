#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "exporter/exporter.h"

namespace lockbench::exporter {

/// All exported metrics of runs. Read on every scrape, so that Prometheus costs nothing on the hot
/// path.
std::vector<prometheus::MetricFamily> collect(const RunMetrics& metrics, const Facts& facts);

/// A watch's metrics: figures by family of locks and by source, from its latest picture. Labels are
/// bounded, and never name a lock or an owner.
std::vector<prometheus::MetricFamily> collect(const WatchMetrics& metrics, const Facts& facts);

}  // namespace lockbench::exporter
