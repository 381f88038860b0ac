#include "loadgen/record/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace lockbench::loadgen {
namespace {

using std::memory_order_relaxed;

struct Sign {
  std::string_view text;
  FailureReason reason;
};

/// Texts of servers, and of connections to them. The first match counts.
constexpr auto kSigns = std::to_array<Sign>({
    {"transaction pooler", FailureReason::refused},
    {"NOAUTH", FailureReason::auth},
    {"WRONGPASS", FailureReason::auth},
    {"NOPERM", FailureReason::auth},
    {"AUTH was refused", FailureReason::auth},
    {"not authenticated", FailureReason::auth},
    {"invalid auth token", FailureReason::auth},
    {"authentication", FailureReason::auth},
    {"unauthenticated", FailureReason::auth},
    {"certificate", FailureReason::auth},
    {"permission denied", FailureReason::auth},
    {"pg_hba.conf", FailureReason::auth},
    {"OOM ", FailureReason::oom},
    {"out of memory", FailureReason::oom},
    {"MEMORY ALLOCATION", FailureReason::oom},
    {"space exceeded", FailureReason::oom},
    {"No space left", FailureReason::oom},
    {"READONLY", FailureReason::readonly},
    {"read-only", FailureReason::readonly},
    {"is a replica", FailureReason::readonly},
    {"MISCONF", FailureReason::readonly},
    {"NOREPLICAS", FailureReason::readonly},
    {"LOADING", FailureReason::busy},
    {"BUSY ", FailureReason::busy},
    {"starting up", FailureReason::busy},
    {"no answer within", FailureReason::timeout},
    {"no connection within", FailureReason::timeout},
    {"timed out", FailureReason::timeout},
    {"timeout", FailureReason::timeout},
    {"TIMEOUT", FailureReason::timeout},
    {"onnection", FailureReason::unreachable},
    {"CONNECTION", FailureReason::unreachable},
    {"max number of clients", FailureReason::unreachable},
    {"too many clients", FailureReason::unreachable},
    {"failed to connect", FailureReason::unreachable},
    {"SERVER HAS FAILED", FailureReason::unreachable},
    {"no ZooKeeper answers", FailureReason::unreachable},
    {"session expired", FailureReason::unreachable},
    {"unreachable", FailureReason::unreachable},
    {"looked up", FailureReason::unreachable},
    {"TLS", FailureReason::unreachable},
    {"No route", FailureReason::unreachable},
    {"no sentinel knows", FailureReason::unreachable},
    {"No such file", FailureReason::unreachable},
});

/// The weights of waits by bucket; in `latest`, censored ones count as infinite.
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
    // Allows for rounding in the sums of shares.
    if (below >= share * total * (1 - 1e-12)) break;
  }
  return last;
}

}  // namespace

ClientWaits::ClientWaits(int clients)
    : clients_(clients), rows_(make_zeros<Row>(2 * kRows * static_cast<std::size_t>(clients))) {}

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
  // With fewer waits, a p99 is the longest.
  constexpr double kFewestForP99 = 100;
  struct Percentile {
    double value = 0;
    bool at_least = false;
    bool of_few = false;
  };
  const auto percentile = [](const Waits& waits, double share) -> Percentile {
    const std::size_t bucket = bucket_at(waits.seen, share);
    const auto middle = std::min<std::int64_t>(Layout::midpoint(bucket), Layout::kHighest);
    // A neighbouring bucket is within the histogram's error.
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
    Percentile p99 = percentile(own, 0.99);
    p99.of_few = total < kFewestForP99;
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
  result.worst_is_longest = worst.of_few;
  return result;
}

FailureReason reason_of(std::string_view message) {
  const auto found = std::ranges::find_if(
      kSigns, [&](const Sign& sign) { return message.find(sign.text) != std::string_view::npos; });
  return found == kSigns.end() ? FailureReason::other : found->reason;
}

// Only the client's thread writes, so no atomic read-modify-write is needed.

void ClientRecord::add(Phase phase, Count what, std::uint64_t more) {
  auto& sum = sums_[static_cast<std::size_t>(phase)][static_cast<std::size_t>(what)];
  sum.store(sum.load(memory_order_relaxed) + more, memory_order_relaxed);
}

void ClientRecord::add(Phase phase, const Counts& more) {
  for (std::size_t i = 0; i < kClientCounts; ++i) {
    if (more.values[i] != 0) add(phase, static_cast<Count>(i), more.values[i]);
  }
}

Counts ClientRecord::counts(Phase phase) const {
  const Sums& sums = sums_[static_cast<std::size_t>(phase)];
  Counts counts;
  std::ranges::transform(sums, counts.values.begin(),
                         [](const auto& sum) { return sum.load(memory_order_relaxed); });
  return counts;
}

std::uint64_t ClientRecord::total(Count what, Phase phase) const {
  const auto at = static_cast<std::size_t>(what);
  if (at >= kClientCounts) return 0;
  return sums_[static_cast<std::size_t>(phase)][at].load(memory_order_relaxed);
}

Recorder::Recorder(int clients, int nodes)
    : clients_(static_cast<std::size_t>(clients)), waits_(clients) {
  for (Histograms& histograms : histograms_) {
    histograms.nodes = std::vector<Node>(static_cast<std::size_t>(nodes));
  }
  failures_.front().message = "other failures";
}

Counts Recorder::totals(Phase phase) const {
  Counts totals = service_counts(phase);
  for (const ClientRecord& client : clients_) totals += client.counts(phase);
  return totals;
}

Counts Recorder::totals() const {
  Counts all;
  for (const Phase phase : kPhases) all += totals(phase);
  return all;
}

std::uint64_t Recorder::total(Count what, Phase phase) const {
  std::uint64_t total = services_[static_cast<std::size_t>(phase)][what].load(memory_order_relaxed);
  for (const ClientRecord& client : clients_) total += client.total(what, phase);
  return total;
}

std::uint64_t Recorder::total(Count what) const {
  std::uint64_t total = 0;
  for (const Phase phase : kPhases) total += this->total(what, phase);
  return total;
}

std::uint64_t Recorder::clients_in(ClientState state) const {
  return static_cast<std::uint64_t>(
      std::count_if(clients_.begin(), clients_.end(), [&](const ClientRecord& client) {
        return client.state.load(memory_order_relaxed) == state;
      }));
}

HistogramSnapshot Recorder::censored(Phase phase, Timing timing) const {
  HistogramSnapshot sum;
  for (const TimingInfo& row : kTimings) {
    if (row.censors == timing) sum.merge(histograms(phase)[row.kind].snapshot());
  }
  return sum;
}

std::uint64_t Recorder::outcome_count(Phase phase, AcquireOutcome outcome) const {
  return histograms(phase)[acquire_timing(outcome)].snapshot().count();
}

void Recorder::add(Phase phase, Count what, std::uint64_t more) {
  services_[static_cast<std::size_t>(phase)][what].fetch_add(more, memory_order_relaxed);
}

void Recorder::add(Phase phase, const Counts& more) {
  for (std::size_t i = 0; i < more.values.size(); ++i) {
    if (more.values[i] != 0) add(phase, static_cast<Count>(i), more.values[i]);
  }
}

void Recorder::renewal(Phase phase, const RenewalReport& report) {
  add(phase, Count::renewal_commands, static_cast<std::uint64_t>(report.commands));
  Histograms& into = histograms(phase);
  into[Timing::renewal_slip].record(std::max(report.slip, Duration::zero()));
  into[Timing::renewal_duration].record(report.duration);
  switch (report.outcome) {
    case RenewalAnswer::renewed:
      add(phase, Count::renewals);
      // A late renewal left no margin.
      into[Timing::renewal_margin].record(std::max(report.margin, Duration::zero()));
      break;
    case RenewalAnswer::not_owner:
      add(phase, Count::renewals_lost);
      break;
    case RenewalAnswer::failed:
      add(phase, Count::renewals_failed);
      failure("renewal: " + report.reason);
      break;
  }
}

void Recorder::vote(Phase phase, int node, Vote vote, Duration taken, bool late) {
  Node& of = histograms(phase).nodes.at(static_cast<std::size_t>(node));
  of.votes[static_cast<std::size_t>(vote)].fetch_add(1, memory_order_relaxed);
  if (!late) of.taken[static_cast<std::size_t>(vote)].record(taken);
}

void Recorder::round(Phase phase, bool split, std::optional<Duration> validity) {
  add(phase, Count::quorum_rounds);
  if (split) add(phase, Count::split_votes);
  if (validity) histograms(phase)[Timing::quorum_validity].record(*validity);
}

void Recorder::replicas_waited(Phase phase, Duration taken, int acknowledged, int wanted) {
  if (acknowledged < wanted) add(phase, Count::replica_refusals);
  want_replicas(static_cast<std::uint64_t>(wanted));
  histograms(phase)[Timing::replica_wait].record(taken);
}

Counts Recorder::service_counts(Phase phase) const {
  Counts counts;
  const auto& services = services_[static_cast<std::size_t>(phase)].values;
  for (std::size_t i = 0; i < services.size(); ++i) {
    counts.values[i] = services[i].load(memory_order_relaxed);
  }
  return counts;
}

ShardedHistogram& Recorder::command(std::string_view name) {
  const std::scoped_lock lock(commands_mutex_);
  auto& histogram = commands_[std::string(name)];
  if (!histogram) histogram = std::make_unique<ShardedHistogram>();
  return *histogram;
}

std::map<std::string, HistogramSnapshot> Recorder::command_snapshots() const {
  const std::scoped_lock lock(commands_mutex_);
  std::map<std::string, HistogramSnapshot> found;
  for (const auto& [command, histogram] : commands_) {
    HistogramSnapshot snapshot = histogram->snapshot();
    if (snapshot.count() > 0) found.emplace(command, std::move(snapshot));
  }
  return found;
}

std::map<std::string, std::uint64_t> Recorder::failure_counts() const {
  std::map<std::string, std::uint64_t> counts;
  const std::size_t listed = listed_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < listed; ++i) {
    // A refusal is listed without being counted.
    const std::uint64_t times = failures_.at(i).times.load(memory_order_relaxed);
    if (times > 0) counts.emplace(failures_.at(i).message, times);
  }
  return counts;
}

Recorder::Failure* Recorder::find_listed(std::string_view message) {
  const auto listed = std::span(failures_).first(listed_.load(std::memory_order_acquire));
  const auto found = std::ranges::find(listed, message, &Failure::message);
  return found == listed.end() ? nullptr : &*found;
}

Recorder::Failure& Recorder::entry_of(const std::string& message) {
  if (Failure* const known = find_listed(message)) return *known;
  if (listed_.load(memory_order_relaxed) == failures_.size()) return failures_.front();
  const std::scoped_lock lock(failures_mutex_);
  if (Failure* const known = find_listed(message)) return *known;
  const std::size_t next = listed_.load(memory_order_relaxed);
  if (next == failures_.size()) return failures_.front();
  failures_.at(next).message = message;
  failures_.at(next).reason = reason_of(message);
  listed_.store(next + 1, std::memory_order_release);
  return failures_.at(next);
}

void Recorder::keep_latest(FailureReason reason, const Failure& entry, const std::string& message) {
  std::atomic<const Failure*>& latest = latest_[reason];
  const Failure* const before = latest.load(memory_order_relaxed);
  if (&entry == &failures_.front()) {
    // If another thread is at it, its message is as late; but the first one must not be lost.
    std::unique_lock lock(failures_mutex_, std::defer_lock);
    if (before == nullptr) lock.lock();
    if (!lock.owns_lock() && !lock.try_lock()) return;
    unlisted_[reason] = message;
  }
  if (before != &entry) latest.store(&entry, std::memory_order_release);
}

FailureReason Recorder::failure(const std::string& message, std::uint64_t times) {
  Failure& entry = entry_of(message);
  entry.times.fetch_add(times, memory_order_relaxed);
  const bool listed = &entry != &failures_.front();
  const FailureReason reason = listed ? entry.reason : reason_of(message);
  keep_latest(reason, entry, message);
  return reason;
}

void Recorder::refusal(const std::string& message) {
  keep_latest(FailureReason::refused, entry_of(message), message);
}

ByKind<FailureReason, std::string> Recorder::latest_failures() const {
  ByKind<FailureReason, std::string> texts;
  const std::scoped_lock lock(failures_mutex_);
  for (std::size_t i = 0; i < texts.values.size(); ++i) {
    const Failure* const latest = latest_.values.at(i).load(std::memory_order_acquire);
    if (latest == nullptr) continue;
    const bool listed = latest != &failures_.front();
    texts.values.at(i) = listed ? latest->message : unlisted_.values.at(i);
  }
  return texts;
}

std::vector<std::string> Recorder::failures() const {
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [message, times] : failure_counts()) sorted.emplace_back(times, message);
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<std::string> lines;
  lines.reserve(sorted.size());
  for (const auto& [count, message] : sorted) {
    lines.push_back(fmt::format("{} × {}", count, message));
  }
  return lines;
}

}  // namespace lockbench::loadgen
