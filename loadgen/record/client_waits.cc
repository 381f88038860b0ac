#include "loadgen/record/client_waits.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <numeric>

namespace lockbench::loadgen {
namespace {

using std::memory_order_relaxed;

/// What waits weigh by their bucket, and what they would if no censored one had ever ended.
struct Waits {
  explicit Waits(std::size_t buckets) : seen(buckets), latest(buckets) {}

  void add(const ClientWaits::Bucket& bucket, double weight) {
    seen[bucket.index] += weight;
    (bucket.censored ? latest.back() : latest[bucket.index]) += weight;
  }

  std::vector<double> seen, latest;
};

/// The bucket of a percentile.
std::size_t bucket_at(const std::vector<double>& weights, double share) {
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

}  // namespace

void ClientWaits::Unmap::operator()(Row* rows) const { ::munmap(rows, bytes); }

ClientWaits::ClientWaits(int clients) : clients_(clients), rows_(make_rows(clients)) {}

ClientWaits::Rows ClientWaits::make_rows(int clients) {
  if (clients == 0) return {nullptr, Unmap{0}};
  const std::size_t bytes = 2 * kRows * static_cast<std::size_t>(clients) * sizeof(Row);
  // Zero pages from the kernel are rows of zeros, and take no memory until a client writes there.
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<Row*>(pages), Unmap{bytes}};
}

std::atomic<std::uint32_t>& ClientWaits::bucket(int client, std::size_t index,
                                                bool censored) const {
  const std::size_t row = index / kRowBuckets + (censored ? kRows : 0);
  const std::size_t at =
      row * static_cast<std::size_t>(clients_) + static_cast<std::size_t>(client);
  return rows_[at][index % kRowBuckets];
}

void ClientWaits::record(int client, Duration wait, bool censored) noexcept {
  const auto value = std::clamp<std::int64_t>(wait.count(), 0, Layout::kHighest);
  // Only this thread writes, so no atomic read-modify-write is needed.
  auto& count = bucket(client, Layout::index(value), censored);
  count.store(count.load(memory_order_relaxed) + 1, memory_order_relaxed);
}

std::vector<ClientWaits::Bucket> ClientWaits::buckets_of(int client) const {
  std::vector<Bucket> found;
  for (const bool censored : {false, true}) {
    for (std::uint32_t i = 0; i < kBuckets; ++i) {
      const std::uint32_t waits = bucket(client, i, censored).load(memory_order_relaxed);
      if (waits > 0) found.push_back({i, censored, waits});
    }
  }
  return found;
}

void ClientWaits::add(int client, const Bucket& more) noexcept {
  if (more.index >= kBuckets) return;
  bucket(client, more.index, more.censored).fetch_add(more.waits, memory_order_relaxed);
}

std::optional<results::ByClient> ClientWaits::by_client() const {
  struct Percentile {
    double value = 0;
    bool at_least = false;
  };
  const auto percentile = [](const Waits& waits, double share) -> Percentile {
    const std::size_t bucket = bucket_at(waits.seen, share);
    const auto middle = std::min<std::int64_t>(Layout::midpoint(bucket), Layout::kHighest);
    // The neighbouring bucket is the same figure within the histogram's error.
    return {seconds(Duration(middle)), bucket_at(waits.latest, share) > bucket + 1};
  };
  Waits all(kBuckets);
  Percentile worst;
  bool any = false;
  for (int client = 0; client < clients_; ++client) {
    const std::vector<Bucket> buckets = buckets_of(client);
    if (buckets.empty()) continue;
    any = true;
    double total = 0;
    for (const Bucket& bucket : buckets) total += bucket.waits;
    Waits own(kBuckets);
    for (const Bucket& bucket : buckets) {
      own.add(bucket, bucket.waits);
      all.add(bucket, bucket.waits / total);
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
