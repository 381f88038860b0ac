#include "exporter/collect.h"

namespace lockbench::exporter {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

Labels to_labels(const std::vector<std::pair<std::string, std::string>>& facts) {
  Labels labels;
  for (const auto& [name, value] : facts) labels.push_back({name, value});
  return labels;
}

MetricFamily& add_family(std::vector<MetricFamily>& families, const char* name, const char* help,
                         prometheus::MetricType type) {
  return families.emplace_back(MetricFamily{name, help, type, {}});
}

void add_number(MetricFamily& family, Labels labels, double value) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  if (family.type == kCounter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

void add_histogram(MetricFamily& family, Labels labels, const LatencyBuckets& buckets) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  ClientMetric::Histogram& into = metric.histogram;
  into.sample_count = buckets.count();
  into.sample_sum = buckets.sum_seconds();
  const auto cumulative = buckets.cumulative();
  into.bucket.reserve(cumulative.size() + 1);
  for (std::size_t n = 0; n < cumulative.size(); ++n) {
    into.bucket.push_back({cumulative[n], static_cast<double>(LatencyBuckets::bound(n)) / 1e9});
  }
}

MetricFamily build_info(const results::Build& build) {
  MetricFamily family{
      "lockbench_build_info", "Facts about this lockbench, as labels; always 1.", kGauge, {}};
  add_number(
      family,
      {{"version", build.version}, {"commit", build.commit}, {"build_type", build.build_type}}, 1);
  return family;
}

}  // namespace lockbench::exporter
