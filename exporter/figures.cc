#include "exporter/figures.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "results/stats/statistics.h"

namespace lockbench::exporter {

FairnessWindow::FairnessWindow(std::size_t clients, TimePoint now)
    : older_(clients), newer_(clients), newer_at_(now) {}

double FairnessWindow::jain(const std::vector<std::uint64_t>& sections, TimePoint now) {
  std::vector<std::uint64_t> lately(sections.size());
  std::ranges::transform(sections, older_, lately.begin(), std::minus());
  if (now - newer_at_ >= kShortest) {
    older_ = std::move(newer_);
    newer_ = sections;
    newer_at_ = now;
  }
  const bool none = std::ranges::all_of(lately, [](std::uint64_t own) { return own == 0; });
  return none ? 0 : results::jain_index(lately);
}

namespace {

using Places = std::array<std::uint8_t, loadgen::kHistogramBuckets>;

Places make_places() {
  Places places{};
  std::size_t coarse = 0;
  for (std::size_t fine = 0; fine < places.size(); ++fine) {
    const std::int64_t middle = loadgen::HistogramLayout::midpoint(fine);
    while (coarse < LatencyBuckets::kBounds && middle > LatencyBuckets::bound(coarse)) ++coarse;
    places[fine] = static_cast<std::uint8_t>(coarse);
  }
  return places;
}

}  // namespace

void LatencyBuckets::add(const loadgen::HistogramSnapshot& fine) {
  static const Places places = make_places();
  for (std::size_t i = 0; i < places.size(); ++i) counts_[places[i]] += fine.buckets[i];
  counts_[kBounds] += fine.overflow;
  sum_ += fine.sum;
}

LatencyBuckets& LatencyBuckets::operator+=(const LatencyBuckets& more) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += more.counts_[i];
  sum_ += more.sum_;
  return *this;
}

std::uint64_t LatencyBuckets::count() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

std::array<std::uint64_t, LatencyBuckets::kBounds> LatencyBuckets::cumulative() const {
  std::array<std::uint64_t, kBounds> sums{};
  std::partial_sum(counts_.begin(), counts_.begin() + kBounds, sums.begin());
  return sums;
}

}  // namespace lockbench::exporter
