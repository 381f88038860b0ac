#include <array>
#include <limits>
#include <optional>

#include "exporter/collect.h"
#include "watch/record.h"

namespace lockbench::exporter {
namespace {

using prometheus::MetricFamily;
using watch::FamilyPicture;
using watch::Figures;
using watch::SourcePicture;

/// A number of a family or a source, with its name and help.
template <class Of>
struct Number {
  const char* name;
  prometheus::MetricType type;
  const char* help;
  double (*value)(const Of& one);
};

/// Prometheus' own word for "there is none".
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double seconds_or(const std::optional<Duration>& duration, double otherwise) {
  return duration ? seconds(*duration) : otherwise;
}

template <auto kMember>
double count_of(const FamilyPicture& family) {
  return static_cast<double>(family.figures.*kMember);
}

constexpr auto kFamilyNumbers = std::to_array<Number<FamilyPicture>>({
    {"lockbench_watch_acquisitions_total", kCounter, "Acquisitions that were seen.",
     count_of<&Figures::acquisitions>},
    {"lockbench_watch_releases_total", kCounter, "Locks that their holders gave back.",
     count_of<&Figures::releases>},
    {"lockbench_watch_renewals_total", kCounter,
     "Times to live that grew while the same client held the lock.", count_of<&Figures::renewals>},
    {"lockbench_watch_expired_while_held_total", kCounter,
     "Holdings that ended by expiry, not by a release: the holder died or overran.",
     count_of<&Figures::expired_while_held>},
    {"lockbench_watch_undecided_ends_total", kCounter,
     "Holdings that ended so close to the expiry that a release is as likely.",
     count_of<&Figures::undecided>},
    {"lockbench_watch_sessions_lost_total", kCounter,
     "Holdings that ended with the session or the connection of their holder.",
     count_of<&Figures::session_lost>},
    {"lockbench_watch_taken_over_total", kCounter,
     "Expired locks that another client took at once: both may believe that they hold it.",
     count_of<&Figures::taken_over>},
    {"lockbench_watch_owner_changed_total", kCounter,
     "Changes of a lock's holder without a release or an expiry in between.",
     count_of<&Figures::owner_changed>},
    {"lockbench_watch_granted_without_ttl_total", kCounter,
     "Holdings that ended without ever having had a time to live, where the store has one.",
     count_of<&Figures::without_ttl>},
    {"lockbench_watch_thin_margins_total", kCounter,
     "Releases and renewals with less than a tenth of the time to live left.",
     count_of<&Figures::thin_margins>},
    {"lockbench_watch_held", kGauge, "Locks that are held.", count_of<&Figures::held_now>},
    {"lockbench_watch_waiters", kGauge, "Clients that wait; NaN where the store does not tell.",
     [](const FamilyPicture& family) {
       const Figures& figures = family.figures;
       return figures.waits_known ? static_cast<double>(figures.waiting_now) : kNone;
     }},
    {"lockbench_watch_without_ttl", kGauge,
     "Locks that are held without a time to live, where the store has one.",
     count_of<&Figures::without_ttl_now>},
    {"lockbench_watch_held_long", kGauge,
     "Locks that are held for longer than --held-longer, or than ten times their family's p99.",
     count_of<&Figures::held_long_now>},
    {"lockbench_watch_renewal_stopped", kGauge,
     "Held locks whose holder renewed them in time and does not any more.",
     count_of<&Figures::renewal_stopped_now>},
    {"lockbench_watch_oldest_hold_seconds", kGauge,
     "For how long the lock is held that is held for longest; 0: none is held.",
     [](const FamilyPicture& family) { return seconds_or(family.figures.oldest_hold, 0); }},
    {"lockbench_watch_oldest_wait_seconds", kGauge,
     "For how long the client waits that waits for longest; 0: none, or not known.",
     [](const FamilyPicture& family) { return seconds_or(family.figures.oldest_wait, 0); }},
    {"lockbench_watch_margin_min_seconds", kGauge,
     "The shortest time to live that was left at a release or renewal, since the watch began; NaN: "
     "none was seen.",
     [](const FamilyPicture& family) { return seconds_or(family.figures.smallest_margin, kNone); }},
    {"lockbench_watch_largest_share", kGauge,
     "The share of the acquisitions that went to the client with most of them.",
     [](const FamilyPicture& family) { return family.figures.largest_share; }},
    {"lockbench_watch_locks", kGauge, "Distinct locks that were seen.",
     [](const FamilyPicture& family) { return static_cast<double>(family.locks); }},
});

struct FamilyHistogram {
  const char* name;
  const char* help;
  const loadgen::HistogramSnapshot Figures::*member;
};

constexpr auto kFamilyHistograms = std::to_array<FamilyHistogram>({
    {"lockbench_watch_hold_duration_seconds", "For how long locks were held.", &Figures::hold},
    {"lockbench_watch_wait_duration_seconds",
     "For how long clients waited, where the store tells who waits.", &Figures::wait},
});

constexpr auto kSourceNumbers = std::to_array<Number<SourcePicture>>({
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

Labels labels_of(const FamilyPicture& family) {
  return {{"store", family.store}, {"family", family.family}};
}

Labels labels_of(const SourcePicture& source) {
  return {{"store", source.facts.store}, {"endpoint", source.facts.endpoint}};
}

template <class Of>
void add_numbers(std::vector<MetricFamily>& all, const auto& rows, const std::vector<Of>& of) {
  for (const Number<Of>& row : rows) {
    MetricFamily& metric = add_family(all, row.name, row.help, row.type);
    for (const Of& one : of) add_number(metric, labels_of(one), row.value(one));
  }
}

void add_source_info(std::vector<MetricFamily>& all, const std::vector<SourcePicture>& sources) {
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
  add_numbers(all, kFamilyNumbers, picture->families);
  for (const FamilyHistogram& row : kFamilyHistograms) {
    MetricFamily& metric = add_family(all, row.name, row.help, kHistogram);
    for (const FamilyPicture& family : picture->families) {
      LatencyBuckets buckets;
      buckets.add(family.figures.*row.member);
      add_histogram(metric, labels_of(family), buckets);
    }
  }
  add_numbers(all, kSourceNumbers, picture->sources);
  add_source_info(all, picture->sources);
  add_number(add_family(all, "lockbench_watch_unfollowed_locks",
                        "Locks that were seen and are not followed, for want of memory.", kGauge),
             {}, static_cast<double>(picture->locks_unfollowed));
  all.push_back(build_info(facts.build));
  return all;
}

}  // namespace lockbench::exporter
