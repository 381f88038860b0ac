#include "loadgen/record/client_waits.h"

#include <algorithm>
#include <numeric>

namespace lockbench::loadgen {
namespace {

using std::memory_order_relaxed;
/// What each bucket weighs.
using Weights = std::array<double, ClientWaits::kBuckets>;

double seconds_at(std::size_t bucket) {
  const auto middle = std::min(ClientWaits::Layout::midpoint(bucket),
                               static_cast<std::int64_t>(ClientWaits::Layout::kHighest));
  return seconds(Duration(middle));
}

/// The bucket of a percentile.
std::size_t bucket_at(const Weights& weights, double share) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double below = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    last = i;
    below += weights[i];
    // Sums of shares are off by rounding.
    if (below >= share * total * (1 - 1e-12)) break;
  }
  return last;
}

/// Waits, and what they would be if none of the censored ones had ever ended.
struct Waits {
  Weights seen{}, latest{};
};

struct Percentile {
  double value = 0;
  bool at_least = false;
};

Percentile percentile(const Waits& waits, double share) {
  const std::size_t bucket = bucket_at(waits.seen, share);
  // The neighbouring bucket is the same figure within the histogram's error.
  return {seconds_at(bucket), bucket_at(waits.latest, share) > bucket + 1};
}

}  // namespace

void ClientWaits::record(Duration wait, bool censored) noexcept {
  const auto value = std::clamp<std::int64_t>(wait.count(), 0, Layout::kHighest);
  // Only this thread writes, so no atomic read-modify-write is needed.
  auto& count = (censored ? censored_ : complete_)[Layout::index(value)];
  count.store(count.load(memory_order_relaxed) + 1, memory_order_relaxed);
}

std::optional<results::ByClient> by_client(const std::vector<const ClientWaits*>& clients) {
  Waits all;
  Percentile worst;
  bool any = false;
  for (const ClientWaits* const client : clients) {
    Waits own;
    for (std::size_t i = 0; i < ClientWaits::kBuckets; ++i) {
      const auto complete = static_cast<double>(client->complete_[i].load(memory_order_relaxed));
      const auto censored = static_cast<double>(client->censored_[i].load(memory_order_relaxed));
      own.seen[i] = complete + censored;
      own.latest[i] += complete;
      own.latest.back() += censored;
    }
    const double waits = std::accumulate(own.seen.begin(), own.seen.end(), 0.0);
    if (waits == 0) continue;
    any = true;
    for (std::size_t i = 0; i < ClientWaits::kBuckets; ++i) {
      all.seen[i] += own.seen[i] / waits;
      all.latest[i] += own.latest[i] / waits;
    }
    const Percentile p99 = percentile(own, 0.99);
    if (p99.value > worst.value || (p99.value == worst.value && p99.at_least)) worst = p99;
  }
  if (!any) return std::nullopt;
  results::ByClient result;
  const auto set = [&](const char* name, double& figure, const Percentile& found) {
    figure = found.value;
    if (found.at_least) result.at_least.emplace_back(name);
  };
  set("p50", result.p50, percentile(all, 0.5));
  set("p99", result.p99, percentile(all, 0.99));
  set("p999", result.p999, percentile(all, 0.999));
  set("worst_p99", result.worst_p99, worst);
  return result;
}

}  // namespace lockbench::loadgen
