#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

#include "exporter/latency_buckets.h"
#include "results/file/model.h"

namespace lockbench::exporter {

// What the collectors share.

using Labels = std::vector<prometheus::ClientMetric::Label>;

inline constexpr auto kCounter = prometheus::MetricType::Counter;
inline constexpr auto kGauge = prometheus::MetricType::Gauge;
inline constexpr auto kHistogram = prometheus::MetricType::Histogram;

Labels to_labels(const std::vector<std::pair<std::string, std::string>>& facts);

/// Adds a series to a family of counters or gauges, or of histograms.
void add_number(prometheus::MetricFamily& family, Labels labels, double value);
void add_histogram(prometheus::MetricFamily& family, Labels labels, const LatencyBuckets& buckets);

/// lockbench_build_info
prometheus::MetricFamily build_info(const results::Build& build);

}  // namespace lockbench::exporter
