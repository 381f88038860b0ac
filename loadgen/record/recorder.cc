#include "loadgen/record/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockbench::loadgen {
namespace {

using std::memory_order_relaxed;
// A store that puts a number into each message must not fill memory.
constexpr std::size_t kDistinctFailures = 16;
constexpr const char* kOtherFailures = "other failures";

}  // namespace

Counts& Counts::operator+=(const Counts& more) {
  ByKind::operator+=(more);
  longest_wait = std::max(longest_wait, more.longest_wait);
  longest_cut = std::max(longest_cut, more.longest_cut);
  return *this;
}

// Only the client's thread writes, so no atomic read-modify-write is needed.

void ClientRecord::add(Phase phase, Count what, std::uint64_t more) {
  auto& sum = numbers_[static_cast<std::size_t>(phase)].sums[static_cast<std::size_t>(what)];
  sum.store(sum.load(memory_order_relaxed) + more, memory_order_relaxed);
}

void ClientRecord::add(Phase phase, const Counts& more) {
  for (std::size_t i = 0; i < kClientCounts; ++i) {
    if (more.values[i] != 0) add(phase, static_cast<Count>(i), more.values[i]);
  }
  add_wait(phase, more.longest_wait, false);
  add_wait(phase, more.longest_cut, true);
}

void ClientRecord::add_wait(Phase phase, Duration wait, bool cut) {
  Numbers& numbers = numbers_[static_cast<std::size_t>(phase)];
  std::atomic<Duration>& longest = cut ? numbers.longest_cut : numbers.longest_wait;
  if (wait > longest.load(memory_order_relaxed)) longest.store(wait, memory_order_relaxed);
}

Counts ClientRecord::counts(Phase phase) const {
  const Numbers& numbers = numbers_[static_cast<std::size_t>(phase)];
  Counts counts;
  for (std::size_t i = 0; i < kClientCounts; ++i) {
    counts.values[i] = numbers.sums[i].load(memory_order_relaxed);
  }
  counts.longest_wait = numbers.longest_wait.load(memory_order_relaxed);
  counts.longest_cut = numbers.longest_cut.load(memory_order_relaxed);
  return counts;
}

std::uint64_t ClientRecord::total(Count what) const {
  const auto at = static_cast<std::size_t>(what);
  if (at >= kClientCounts) return 0;
  std::uint64_t total = 0;
  for (const Numbers& numbers : numbers_) total += numbers.sums[at].load(memory_order_relaxed);
  return total;
}

Recorder::Recorder(int clients, int nodes)
    : clients_(static_cast<std::size_t>(clients)), waits_(clients) {
  for (Histograms& histograms : histograms_) {
    histograms.nodes = std::vector<Node>(static_cast<std::size_t>(nodes));
  }
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

std::uint64_t Recorder::total(Count what) const {
  std::uint64_t total = 0;
  for (const ClientRecord& client : clients_) total += client.total(what);
  for (const auto& services : services_) total += services[what].load(memory_order_relaxed);
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
      // A renewal that came too late left no margin.
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
  const std::scoped_lock lock(failures_mutex_);
  return failures_;
}

void Recorder::failure(const std::string& message, std::uint64_t times) {
  const std::scoped_lock lock(failures_mutex_);
  const bool known = failures_.contains(message);
  failures_[known || failures_.size() < kDistinctFailures ? message : kOtherFailures] += times;
  latest_[reason_of(message)] = message;
}

ByKind<FailureReason, std::string> Recorder::latest_failures() const {
  const std::scoped_lock lock(failures_mutex_);
  return latest_;
}

std::vector<std::string> Recorder::failures() const {
  const std::scoped_lock lock(failures_mutex_);
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [message, count] : failures_) sorted.emplace_back(count, message);
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<std::string> lines;
  lines.reserve(sorted.size());
  for (const auto& [count, message] : sorted) {
    lines.push_back(fmt::format("{} × {}", count, message));
  }
  return lines;
}

}  // namespace lockbench::loadgen
