#include "loadgen/record/histogram.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace lockbench::loadgen {
namespace {

/// If censored samples could raise a figure by more than this factor, it is a lower bound.
constexpr double kSameFigure = 1.05;

using Layout = HistogramLayout;
constexpr auto kRelaxed = std::memory_order_relaxed;

Duration clipped_midpoint(const HistogramSnapshot& snapshot, std::size_t index) {
  return std::max(snapshot.min, std::min(snapshot.max, Duration(Layout::midpoint(index))));
}

/// Makes min and max agree with the buckets, which may have been read slightly earlier or later.
void widen_to_buckets(HistogramSnapshot& snapshot, Duration lowest, Duration highest) {
  snapshot.min = lowest;
  snapshot.max = highest;
  const auto& buckets = snapshot.buckets;
  const auto holds = [](std::uint64_t count) { return count > 0; };
  const auto first = std::find_if(buckets.begin(), buckets.end(), holds);
  if (first == buckets.end()) return;
  const auto last = std::find_if(buckets.rbegin(), buckets.rend(), holds);
  const auto first_index = static_cast<std::size_t>(first - buckets.begin());
  const auto last_index = static_cast<std::size_t>(buckets.rend() - last - 1);
  snapshot.min = std::min(lowest, Duration(Layout::upper(first_index)));
  snapshot.max = std::max(highest, Duration(Layout::lower(last_index)));
}

/// Millions of waits of hours, as of sections that were never begun, add up to more than 63 bits:
/// the sum stays the largest then.
constexpr Duration saturated_sum(Duration a, Duration b) {
  // Only a damaged record of a rank has negative ones.
  a = std::max(a, Duration::zero());
  b = std::max(b, Duration::zero());
  return b > Duration::max() - a ? Duration::max() : a + b;
}

Duration saturated_product(Duration one, std::uint64_t count) {
  constexpr double kMost = 9e18;
  const double product = static_cast<double>(one.count()) * static_cast<double>(count);
  return Duration(std::llround(std::min(kMost, product)));
}

void add_to_sum(std::atomic<std::int64_t>& sum, Duration more) noexcept {
  std::int64_t before = sum.load(kRelaxed);
  while (
      !sum.compare_exchange_weak(before, saturated_sum(Duration(before), more).count(), kRelaxed)) {
  }
}

Duration duration_of(double in_seconds) { return Duration(std::llround(in_seconds * 1e9)); }

std::vector<results::Distribution::Bucket> buckets_of(const HistogramSnapshot& snapshot) {
  std::vector<results::Distribution::Bucket> buckets;
  for (std::size_t i = 0; i < snapshot.buckets.size(); ++i) {
    if (snapshot.buckets[i] == 0) continue;
    buckets.push_back({seconds(Duration(Layout::upper(i))), snapshot.buckets[i]});
  }
  return buckets;
}

/// Bounds and sum are those of the buckets' midpoints; the overflow lies at the maximum.
HistogramSnapshot from_buckets(const std::vector<results::Distribution::Bucket>& buckets,
                               std::uint64_t overflow, double max) {
  HistogramSnapshot snapshot;
  for (const results::Distribution::Bucket& bucket : buckets) {
    const std::int64_t upper = duration_of(bucket.upper).count();
    const std::size_t at = Layout::index(std::clamp<std::int64_t>(upper, 0, Layout::kHighest));
    const Duration middle(Layout::midpoint(at));
    snapshot.buckets[at] += bucket.count;
    snapshot.sum = saturated_sum(snapshot.sum, saturated_product(middle, bucket.count));
    if (&bucket == &buckets.front()) snapshot.min = middle;
    snapshot.max = middle;
  }
  snapshot.overflow = overflow;
  if (overflow > 0) snapshot.max = duration_of(max);
  snapshot.sum = saturated_sum(snapshot.sum, saturated_product(snapshot.max, overflow));
  return snapshot;
}

std::uint64_t difference(std::uint64_t later, std::uint64_t earlier) {
  return later > earlier ? later - earlier : 0;
}

}  // namespace

void HistogramSnapshot::record(Duration sample) {
  const Duration value = std::max(sample, Duration::zero());
  // Not through count(), which walks the buckets.
  const bool first = max == Duration::zero() && buckets[0] == 0;
  min = first ? value : std::min(min, value);
  max = first ? value : std::max(max, value);
  sum += value;
  if (value.count() > Layout::kHighest) {
    ++overflow;
  } else {
    ++buckets[Layout::index(value.count())];
  }
}

std::uint64_t HistogramSnapshot::count() const {
  std::uint64_t total = overflow;
  for (const std::uint64_t bucket : buckets) total += bucket;
  return total;
}

Duration HistogramSnapshot::mean() const {
  const auto samples = static_cast<std::int64_t>(count());
  return samples == 0 ? Duration::zero() : sum / samples;
}

Duration HistogramSnapshot::stddev() const {
  const auto samples = static_cast<double>(count());
  if (samples == 0) return Duration::zero();
  const double average = static_cast<double>(sum.count()) / samples;
  const auto square = [average](Duration value) {
    const double off = static_cast<double>(value.count()) - average;
    return off * off;
  };
  double squares = static_cast<double>(overflow) * square(max);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i] == 0) continue;
    squares += static_cast<double>(buckets[i]) * square(clipped_midpoint(*this, i));
  }
  return Duration(std::llround(std::sqrt(squares / samples)));
}

Duration HistogramSnapshot::percentile(double q) const {
  const std::uint64_t samples = count();
  if (samples == 0) return Duration::zero();
  // Rounding: 0.07 * 100 is slightly above 7, but the rank is 7.
  const double exact = std::clamp(q, 0.0, 1.0) * static_cast<double>(samples) - 1e-6;
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(exact)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    seen += buckets[i];
    if (seen >= rank) return clipped_midpoint(*this, i);
  }
  return max;
}

void HistogramSnapshot::merge(const HistogramSnapshot& other) {
  if (other.count() == 0) return;
  const bool first = count() == 0;
  min = first ? other.min : std::min(min, other.min);
  max = first ? other.max : std::max(max, other.max);
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
  overflow += other.overflow;
  sum = saturated_sum(sum, other.sum);
}

HistogramSnapshot HistogramSnapshot::minus(const HistogramSnapshot& earlier) const {
  HistogramSnapshot result;
  std::size_t first = buckets.size();
  std::size_t last = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    result.buckets[i] = difference(buckets[i], earlier.buckets[i]);
    if (result.buckets[i] == 0) continue;
    first = std::min(first, i);
    last = i;
  }
  result.overflow = difference(overflow, earlier.overflow);
  const bool in_range = first < buckets.size();
  if (!in_range && result.overflow == 0) return result;
  result.sum = std::max(sum - earlier.sum, Duration::zero());
  result.min = std::max(min, Duration(in_range ? Layout::lower(first) : Layout::kHighest));
  result.max = result.overflow > 0 ? max : std::min(max, Duration(Layout::upper(last)));
  return result;
}

results::Distribution to_distribution(const HistogramSnapshot& complete,
                                      const HistogramSnapshot& censored) {
  HistogramSnapshot all = complete;
  all.merge(censored);
  results::Distribution result;
  result.count = complete.count();
  result.censored = {censored.count(), buckets_of(censored), censored.overflow};
  const std::uint64_t samples = result.count + result.censored.count;
  // The full length of the longest is unknown.
  const bool longest_cut = result.censored.count > 0 && censored.max >= complete.max;
  if (longest_cut || seconds(all.sum) > kSameFigure * seconds(complete.sum)) {
    result.at_least.emplace_back("mean");
  }
  if (longest_cut) result.at_least.emplace_back("max");
  // Not through mean(), which rounds to nanoseconds.
  if (samples > 0) result.mean = seconds(all.sum) / static_cast<double>(samples);
  result.stddev = seconds(all.stddev());
  // A censored wait cannot be the shortest.
  result.min = seconds(result.count > 0 ? complete.min : all.min);
  result.max = seconds(all.max);
  // Counts censored samples as infinite, for the upper bound.
  HistogramSnapshot latest = complete;
  latest.overflow += result.censored.count;
  latest.max = Duration::max();
  const auto set = [&](const char* name, double& figure, double q) {
    figure = seconds(all.percentile(q));
    if (result.censored.count == 0) return;
    const double bound = seconds(latest.percentile(q));
    if (bound > kSameFigure * figure) result.at_least.emplace_back(name);
  };
  set("p50", result.p50, 0.50);
  set("p90", result.p90, 0.90);
  set("p95", result.p95, 0.95);
  set("p99", result.p99, 0.99);
  set("p999", result.p999, 0.999);
  result.relative_error = Layout::kRelativeError;
  result.buckets = buckets_of(complete);
  result.overflow = complete.overflow;
  return result;
}

HistogramSnapshot to_censored_snapshot(const results::Distribution& distribution) {
  return from_buckets(distribution.censored.buckets, distribution.censored.overflow,
                      distribution.max);
}

HistogramSnapshot to_snapshot(const results::Distribution& distribution) {
  HistogramSnapshot snapshot =
      from_buckets(distribution.buckets, distribution.overflow, distribution.max);
  if (distribution.censored.count > 0) return snapshot;
  snapshot.sum = duration_of(distribution.mean * static_cast<double>(distribution.count));
  snapshot.min = duration_of(distribution.min);
  snapshot.max = duration_of(distribution.max);
  return snapshot;
}

ShardedHistogram::ShardedHistogram() : ShardedHistogram(std::thread::hardware_concurrency()) {}

ShardedHistogram::ShardedHistogram(std::size_t shards)
    : shard_count_(std::bit_ceil(std::max<std::size_t>(1, shards))),
      shards_(make_zeros<Shard>(shard_count_)) {}

void ShardedHistogram::Shard::widen_to(std::int64_t value) noexcept {
  raise_to(min_below_top, std::max<std::int64_t>(1, kTop - value));
  raise_to(max, value);
}

void ShardedHistogram::record(Duration sample) noexcept {
  const std::int64_t value = std::max<std::int64_t>(0, sample.count());
  Shard& shard = shards_[static_cast<std::size_t>(sched_getcpu()) & (shard_count_ - 1)];
  shard.widen_to(value);
  shard.sum.fetch_add(value, kRelaxed);
  if (value > Layout::kHighest) {
    shard.overflow.fetch_add(1, kRelaxed);
  } else {
    shard.buckets[Layout::index(value)].fetch_add(1, kRelaxed);
  }
}

void ShardedHistogram::record_evenly(Duration longest, std::uint64_t samples,
                                     std::uint64_t left_out, Duration shortest) noexcept {
  constexpr double kMostSum = 4e18;  // leaves room in 63 bits
  if (samples <= left_out || longest <= Duration::zero()) return;
  Shard& shard = shards_[0];
  // Of n samples, the k-th is k/n of the way from the shortest to the longest.
  const auto all = static_cast<double>(samples), least = static_cast<double>(shortest.count());
  const double span = static_cast<double>((longest - shortest).count());
  const auto first = static_cast<double>(left_out) + 1;
  shard.widen_to(std::llround(least + span * first / all));
  shard.widen_to(longest.count());
  const double sum = (all - first + 1) * (least + span * (first + all) / (2 * all));
  add_to_sum(shard.sum, Duration(static_cast<std::int64_t>(std::min(kMostSum, sum))));
  std::uint64_t counted = left_out;
  for (std::size_t i = 0; i < kHistogramBuckets && counted < samples; ++i) {
    const double share = (static_cast<double>(Layout::upper(i)) - least) / span;
    const auto below = static_cast<std::uint64_t>(all * std::max(share, 0.0));
    const std::uint64_t so_far = share < 1 ? std::max(left_out, below) : samples;
    shard.buckets[i].fetch_add(so_far - counted, kRelaxed);
    counted = so_far;
  }
  shard.overflow.fetch_add(samples - counted, kRelaxed);
}

void ShardedHistogram::add(const HistogramSnapshot& more) noexcept {
  if (more.count() == 0) return;  // its bounds would count as samples
  Shard& shard = shards_[0];
  shard.widen_to(more.min.count());
  shard.widen_to(more.max.count());
  add_to_sum(shard.sum, more.sum);
  shard.overflow.fetch_add(more.overflow, kRelaxed);
  for (std::size_t i = 0; i < kHistogramBuckets; ++i) {
    if (more.buckets[i] != 0) shard.buckets[i].fetch_add(more.buckets[i], kRelaxed);
  }
}

bool ShardedHistogram::empty() const noexcept {
  for (std::size_t s = 0; s < shard_count_; ++s) {
    if (!shards_[s].empty()) return false;
  }
  return true;
}

HistogramSnapshot ShardedHistogram::snapshot() const {
  HistogramSnapshot result;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::int64_t highest = 0;
  for (std::size_t s = 0; s < shard_count_; ++s) {
    const Shard& shard = shards_[s];
    if (shard.empty()) continue;  // otherwise its pages would take memory
    for (std::size_t i = 0; i < kHistogramBuckets; ++i) {
      result.buckets[i] += shard.buckets[i].load(kRelaxed);
    }
    result.overflow += shard.overflow.load(kRelaxed);
    result.sum = saturated_sum(result.sum, Duration(shard.sum.load(kRelaxed)));
    lowest = std::min(lowest, Shard::kTop - shard.min_below_top.load(kRelaxed));
    highest = std::max(highest, shard.max.load(kRelaxed));
  }
  if (result.count() == 0) return {};
  widen_to_buckets(result, Duration(lowest), Duration(highest));
  return result;
}

}  // namespace lockbench::loadgen
