#include "watch/workload.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "loadgen/run/demand.h"
#include "loadgen/run/duration_distribution.h"

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;

constexpr int kKeys = 50, kClients = 20;
constexpr double kRate = 200;
constexpr Duration kMeanHold = 2ms, kTime = 120s, kTtl = 10s;
/// The 99th percentile of an exponential distribution, as a multiple of the mean.
const double exp_p99 = std::log(100);

struct Section {
  TimePoint from{}, to{};
  int key = 0, client = 0;
};

/// Sections with Poisson or regular arrivals; each waits until its lock is free.
std::vector<Section> sections(double skew, bool regular = false) {
  Random random(7);
  const loadgen::KeyChooser chooser(kKeys, skew);
  std::vector<TimePoint> free(kKeys);
  std::vector<Section> all;
  TimePoint at(1000s);
  const TimePoint end = at + kTime;
  while (true) {
    const double gap = regular ? 1 : loadgen::draw_exponential(random);
    at += Duration(std::llround(gap / kRate * 1e9));
    if (at >= end) return all;
    Section section{.key = chooser.pick(random)};
    section.client = static_cast<int>(random() % kClients);
    TimePoint& next = free[static_cast<std::size_t>(section.key)];
    section.from = std::max(at, next + 1us);
    section.to = section.from + Duration(std::llround(loadgen::draw_exponential(random) *
                                                      static_cast<double>(kMeanHold.count())));
    next = section.to;
    all.push_back(section);
  }
}

/// A ledger's usage from the sightings of these sections.
Usage usage_of(const std::vector<Section>& all) {
  struct Event {
    TimePoint at;
    bool grant;
    Section section;
  };
  std::vector<Event> events;
  for (const Section& section : all) {
    events.push_back({section.from, true, section});
    events.push_back({section.to, false, section});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  Ledger ledger(LedgerOptions{.salt = "1"});
  ledger.facts({.store = "redis", .endpoint = "here", .accuracy = Accuracy::exact});
  ledger.sees("here", TimePoint(1000s));
  for (const Event& event : events) {
    Sighting sighting{.lock = "lock:" + std::to_string(event.section.key),
                      .at = event.at,
                      .shape = Shape::token,
                      .changes = 1};
    if (event.grant) {
      sighting.holders = {{.owner = "client" + std::to_string(event.section.client)}};
      sighting.ttl_left = kTtl;
    }
    ledger.seen("here", std::move(sighting));
  }
  return ledger.usage(TimePoint(1000s) + kTime);
}

loadgen::DurationDistribution hold_of(const ObservedWorkload& workload) {
  std::istringstream lines(quantiles_text(workload));
  auto hold = loadgen::DurationDistribution::read_quantiles(lines, "hold");
  EXPECT_TRUE(hold) << hold.error();
  return hold.value_or(loadgen::DurationDistribution());
}

void expect_known(const tl::expected<ObservedWorkload, std::string>& workload, double skew) {
  ASSERT_TRUE(workload) << workload.error();
  EXPECT_NEAR(workload->rate, kRate, 0.1 * kRate);
  EXPECT_FALSE(workload->constant_arrival);
  EXPECT_NEAR(static_cast<double>(workload->clients), kClients, 0.1 * kClients);
  EXPECT_NEAR(static_cast<double>(workload->keys), kKeys, 0.1 * kKeys);
  EXPECT_NEAR(workload->key_skew, skew, 0.1 * skew);
  EXPECT_EQ(workload->ttl, kTtl);
  const loadgen::DurationDistribution hold = hold_of(*workload);
  const double mean = seconds(kMeanHold);
  EXPECT_NEAR(seconds(hold.mean()), mean, 0.1 * mean);
  EXPECT_NEAR(seconds(workload->work_p50), std::log(2) * mean, 0.1 * std::log(2) * mean);
  EXPECT_NEAR(seconds(workload->work_p99), exp_p99 * mean, 0.1 * exp_p99 * mean);
}

TEST(Workload, OfSightingsIsTheOneThatMadeThem) {
  for (const double skew : {0.0, 0.5, 1.0}) {
    SCOPED_TRACE(skew);
    expect_known(workload_of(usage_of(sections(skew))), skew);
  }
}

TEST(Workload, RegularArrivalsAreConstant) {
  const auto workload = workload_of(usage_of(sections(0, true)));
  ASSERT_TRUE(workload) << workload.error();
  EXPECT_TRUE(workload->constant_arrival);
}

TEST(Workload, SkewOfManySeldomTakenLocksIsFound) {
  Random random(11);
  const loadgen::KeyChooser chooser(10'000, 1);
  std::vector<std::uint64_t> by_lock(10'000);
  for (int i = 0; i < 50'000; ++i) ++by_lock[static_cast<std::size_t>(chooser.pick(random))];
  std::erase(by_lock, 0U);
  EXPECT_NEAR(fit_zipf(by_lock), 1, 0.1);
}

TEST(Workload, EqualLocksHaveNoSkew) {
  EXPECT_EQ(fit_zipf({}), 0);
  EXPECT_EQ(fit_zipf({5'000}), 0);
  EXPECT_EQ(fit_zipf({100, 100, 100}), 0);
  EXPECT_EQ(fit_zipf(std::vector<std::uint64_t>(1000, 1)), 0);
}

TEST(Workload, OfTooLittleIsRefused) {
  Usage usage;
  usage.watched = 1h;
  usage.acquisitions = 99;
  EXPECT_THAT(workload_of(usage).error(), HasSubstr("0 holdings were seen to end"));
  for (int i = 0; i < 99; ++i) usage.hold.record(1ms);
  EXPECT_THAT(workload_of(usage).error(), HasSubstr("takes 100"));
  usage.hold.record(1ms);
  EXPECT_TRUE(workload_of(usage));
  usage.watched = 999ms;
  EXPECT_THAT(workload_of(usage).error(), HasSubstr("less than a second"));
  usage.watched = 1h;
  usage.acquisitions = 0;
  EXPECT_THAT(workload_of(usage).error(), HasSubstr("no acquisition"));
}

TEST(Workload, OwnersOfOneAcquisitionEachAreNoClients) {
  Usage usage = usage_of(sections(0));
  usage.owners = usage.acquisitions;
  usage.most_at_once = 17;
  const auto workload = workload_of(usage);
  ASSERT_TRUE(workload);
  EXPECT_EQ(workload->clients, 17U);
  EXPECT_THAT(workload->remarks, Contains(HasSubstr("has a new owner")));
}

TEST(Workload, SaysWhatIsApproximate) {
  Usage usage = usage_of(sections(0));
  usage.accuracy = Accuracy::at_least;
  usage.dispersion = 6.0;
  usage.ttl = {};
  const auto workload = workload_of(usage);
  ASSERT_TRUE(workload);
  EXPECT_THAT(workload->remarks, Contains(HasSubstr("at least this")));
  EXPECT_THAT(workload->remarks, Contains(HasSubstr("bursts")));
  EXPECT_THAT(workload->remarks, Contains(HasSubstr("No TTL")));
  EXPECT_EQ(workload->ttl, std::nullopt);
  const std::string text = toml_text(*workload, "hold");
  for (const std::string& remark : workload->remarks) EXPECT_THAT(text, HasSubstr("# " + remark));
}

TEST(Workload, ThatCannotBeWrittenNamesItsFile) {
  const auto workload = workload_of(usage_of(sections(0)));
  ASSERT_TRUE(workload);
  const auto written = write_workload(*workload, "/proc/none/workload.toml");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error(), HasSubstr("/proc/none/workload"));
}

}  // namespace
}  // namespace lockbench::watch
