#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

#include "exporter/figures.h"
#include "exporter/run_metrics.h"
#include "exporter/watch_metrics.h"
#include "results/file/model.h"

namespace lockbench::exporter {

/// Everything that is exported of runs, read on every scrape: nothing of Prometheus is on the hot
/// path.
std::vector<prometheus::MetricFamily> collect(const RunMetrics& metrics, const Facts& facts);

/// What a watch exports: figures by family of locks and by source, from its latest picture. Labels
/// are bounded, and never a lock or an owner.
std::vector<prometheus::MetricFamily> collect(const WatchMetrics& metrics, const Facts& facts);

// What both share.

using Labels = std::vector<prometheus::ClientMetric::Label>;

inline constexpr auto kCounter = prometheus::MetricType::Counter;
inline constexpr auto kGauge = prometheus::MetricType::Gauge;
inline constexpr auto kHistogram = prometheus::MetricType::Histogram;

Labels to_labels(const std::vector<std::pair<std::string, std::string>>& facts);

/// Valid until another one is added.
prometheus::MetricFamily& add_family(std::vector<prometheus::MetricFamily>& families,
                                     const char* name, const char* help,
                                     prometheus::MetricType type);

/// Adds a series to a family of counters or gauges, or of histograms.
void add_number(prometheus::MetricFamily& family, Labels labels, double value);
void add_histogram(prometheus::MetricFamily& family, Labels labels, const LatencyBuckets& buckets);

/// lockbench_build_info
prometheus::MetricFamily build_info(const results::Build& build);

}  // namespace lockbench::exporter
