#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <variant>

#include "exporter/collect.h"
#include "results/tables/observed.h"
#include "watch/picture.h"

namespace lockbench::exporter {
namespace {

using prometheus::MetricFamily;
using results::FamilyRow;
using results::Observed;
using watch::FamilyPicture;
using watch::SourcePicture;

/// Prometheus' own word for "there is none".
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// The series of one row.
class FamilySeries {
 public:
  FamilySeries(MetricFamily& metric, const FamilyPicture& family)
      : metric_(metric), family_(family) {}

  template <class Number>
  void operator()(Number Observed::*member) const {
    add_number(metric_, labels(), static_cast<double>(family_.*member));
  }
  template <class Number>
  void operator()(std::optional<Number> Observed::*member) const {
    const auto& number = family_.*member;
    add_number(metric_, labels(), number ? static_cast<double>(*number) : kNone);
  }
  void operator()(results::Distribution Observed::* /*hold*/) const { add(family_.holds); }
  void operator()(std::optional<results::Distribution> Observed::* /*wait*/) const {
    add(family_.waits);
  }

 private:
  void add(const loadgen::HistogramSnapshot& samples) const {
    LatencyBuckets buckets;
    buckets.add(samples);
    add_histogram(metric_, labels(), buckets);
  }
  Labels labels() const { return {{"store", family_.store}, {"family", family_.family}}; }

  MetricFamily& metric_;
  const FamilyPicture& family_;
};

prometheus::MetricType type_of(const FamilyRow& row) {
  const bool histogram =
      std::holds_alternative<results::Distribution Observed::*>(row.member) ||
      std::holds_alternative<std::optional<results::Distribution> Observed::*>(row.member);
  if (histogram) return kHistogram;
  return std::string_view(row.metric).ends_with("_total") ? kCounter : kGauge;
}

void add_families(std::vector<MetricFamily>& all, const watch::Picture& picture) {
  for (const FamilyRow& row : results::kFamilyRows) {
    if (row.metric == nullptr) continue;
    MetricFamily& metric = add_family(all, row.metric, row.help, type_of(row));
    for (const FamilyPicture& family : picture.families) {
      std::visit(FamilySeries(metric, family), row.member);
    }
  }
}

/// A number of a source, with its name and help.
struct SourceNumber {
  const char* name;
  prometheus::MetricType type;
  const char* help;
  double (*value)(const SourcePicture& source);
};

constexpr auto kSourceNumbers = std::to_array<SourceNumber>({
    {"lockbench_watch_sees", kGauge, "1 while the watch sees this server's locks; 0: it is blind.",
     [](const SourcePicture& source) { return source.sees ? 1.0 : 0.0; }},
    {"lockbench_watch_blind_seconds_total", kCounter, "Time during which the watch saw nothing.",
     [](const SourcePicture& source) { return source.blind_seconds; }},
    {"lockbench_watch_missed_total", kCounter,
     "Changes that were not looked at, for want of budget or memory.",
     [](const SourcePicture& source) { return static_cast<double>(source.missed); }},
    {"lockbench_watch_commands_total", kCounter, "Commands that the watch sent to this server.",
     [](const SourcePicture& source) { return static_cast<double>(source.commands); }},
});

Labels labels_of(const SourcePicture& source) {
  return {{"store", source.facts.store}, {"endpoint", source.facts.endpoint}};
}

void add_sources(std::vector<MetricFamily>& all, const std::vector<SourcePicture>& sources) {
  for (const SourceNumber& row : kSourceNumbers) {
    MetricFamily& metric = add_family(all, row.name, row.help, row.type);
    for (const SourcePicture& source : sources) {
      add_number(metric, labels_of(source), row.value(source));
    }
  }
  MetricFamily& info = add_family(all, "lockbench_watch_source_info",
                                  "How a server is watched, as labels; always 1.", kGauge);
  for (const SourcePicture& source : sources) {
    Labels labels = labels_of(source);
    labels.push_back({"way", source.facts.way});
    labels.push_back({"accuracy", std::string(watch::name_of(source.facts.accuracy))});
    add_number(info, std::move(labels), 1);
  }
}

}  // namespace

std::vector<MetricFamily> collect(const WatchMetrics& metrics, const Facts& facts) {
  const std::shared_ptr<const watch::Picture> picture = metrics.read();
  std::vector<MetricFamily> all;
  add_families(all, *picture);
  add_sources(all, picture->sources);
  add_number(add_family(all, "lockbench_watch_unfollowed_locks",
                        "Locks that were seen and are not followed, for want of memory.", kGauge),
             {}, static_cast<double>(picture->locks_unfollowed));
  all.push_back(build_info(facts.build));
  return all;
}

}  // namespace lockbench::exporter
