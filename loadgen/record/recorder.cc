#include "loadgen/record/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockbench::loadgen {
namespace {

// Enough to see what goes wrong; a store that puts a number into each message must not fill memory.
constexpr std::size_t kDistinctFailures = 16;
constexpr const char* kOtherFailures = "other failures";

}  // namespace

Counts& Counts::operator+=(const Counts& more) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += more.sums[i];
  longest_wait = std::max(longest_wait, more.longest_wait);
  return *this;
}

void ClientRecord::add(Phase phase, const Counts& more) {
  // Only this thread writes, so that no read-modify-write is needed.
  constexpr auto kRelaxed = std::memory_order_relaxed;
  Numbers& numbers = numbers_[static_cast<std::size_t>(phase)];
  for (std::size_t i = 0; i < more.sums.size(); ++i) {
    if (more.sums[i] == 0) continue;
    numbers.sums[i].store(numbers.sums[i].load(kRelaxed) + more.sums[i], kRelaxed);
  }
  if (more.longest_wait.count() > numbers.longest_wait_ns.load(kRelaxed)) {
    numbers.longest_wait_ns.store(more.longest_wait.count(), kRelaxed);
  }
}

Counts ClientRecord::counts(Phase phase) const {
  const Numbers& numbers = numbers_[static_cast<std::size_t>(phase)];
  Counts counts;
  for (std::size_t i = 0; i < counts.sums.size(); ++i) {
    counts.sums[i] = numbers.sums[i].load(std::memory_order_relaxed);
  }
  counts.longest_wait = Duration(numbers.longest_wait_ns.load(std::memory_order_relaxed));
  return counts;
}

Recorder::Recorder(int clients, int nodes) : clients_(static_cast<std::size_t>(clients)) {
  for (Histograms& histograms : histograms_) {
    histograms.nodes = std::vector<Histograms::Node>(static_cast<std::size_t>(nodes));
  }
}

Counts Recorder::totals(Phase phase) const {
  Counts totals;
  for (const ClientRecord& client : clients_) totals += client.counts(phase);
  return totals;
}

std::uint64_t Recorder::clients_in(ClientState state) const {
  return static_cast<std::uint64_t>(
      std::count_if(clients_.begin(), clients_.end(), [&](const ClientRecord& client) {
        return client.state.load(std::memory_order_relaxed) == state;
      }));
}

std::uint64_t Recorder::outcome_count(Phase phase, AcquireOutcome outcome) const {
  return histograms(phase).acquire_with(outcome).snapshot().count();
}

void Recorder::service_command(Phase phase) {
  services_[static_cast<std::size_t>(phase)].commands.fetch_add(1, std::memory_order_relaxed);
}

void Recorder::renewal(Phase phase, const RenewalReport& report) {
  ServiceNumbers& numbers = services_[static_cast<std::size_t>(phase)];
  numbers.renewals[static_cast<std::size_t>(report.outcome)].fetch_add(1,
                                                                       std::memory_order_relaxed);
  numbers.renewal_commands.fetch_add(static_cast<std::uint64_t>(report.commands),
                                     std::memory_order_relaxed);
  if (report.outcome == RenewalAnswer::failed) failure("renewal: " + report.reason);
  Histograms& into = histograms(phase);
  into.renewal_slip.record(std::max(report.slip, Duration::zero()));
  into.renewal_duration.record(report.duration);
  // One that came too late left nothing.
  if (report.outcome == RenewalAnswer::renewed) {
    into.renewal_margin.record(std::max(report.margin, Duration::zero()));
  }
}

ServiceCounts Recorder::service_counts(Phase phase) const {
  const ServiceNumbers& numbers = services_[static_cast<std::size_t>(phase)];
  const auto renewals = [&](RenewalAnswer outcome) {
    return numbers.renewals[static_cast<std::size_t>(outcome)].load(std::memory_order_relaxed);
  };
  return {.commands = numbers.commands.load(std::memory_order_relaxed),
          .renewals = renewals(RenewalAnswer::renewed),
          .renewals_failed = renewals(RenewalAnswer::failed),
          .renewals_refused = renewals(RenewalAnswer::not_owner),
          .renewal_commands = numbers.renewal_commands.load(std::memory_order_relaxed)};
}

void Recorder::vote(Phase phase, int node, Vote vote, Duration taken, bool late) {
  Histograms::Node& of = histograms(phase).nodes.at(static_cast<std::size_t>(node));
  of.votes[static_cast<std::size_t>(vote)].fetch_add(1, std::memory_order_relaxed);
  if (!late) of.taken[static_cast<std::size_t>(vote)].record(taken);
}

void Recorder::round(Phase phase, bool split, std::optional<Duration> validity) {
  ServiceNumbers& numbers = services_[static_cast<std::size_t>(phase)];
  numbers.rounds.fetch_add(1, std::memory_order_relaxed);
  if (split) numbers.split_votes.fetch_add(1, std::memory_order_relaxed);
  if (validity) histograms(phase).validity.record(*validity);
}

QuorumCounts Recorder::quorum_counts(Phase phase) const {
  const ServiceNumbers& numbers = services_[static_cast<std::size_t>(phase)];
  return {.rounds = numbers.rounds.load(std::memory_order_relaxed),
          .split_votes = numbers.split_votes.load(std::memory_order_relaxed)};
}

void Recorder::replicas_waited(Phase phase, Duration taken, int acknowledged, int wanted) {
  ServiceNumbers& numbers = services_[static_cast<std::size_t>(phase)];
  if (acknowledged < wanted) numbers.replica_refusals.fetch_add(1, std::memory_order_relaxed);
  numbers.replicas_wanted.store(static_cast<std::uint64_t>(wanted), std::memory_order_relaxed);
  histograms(phase).replica_wait.record(taken);
}

ReplicationCounts Recorder::replication_counts(Phase phase) const {
  const ServiceNumbers& numbers = services_[static_cast<std::size_t>(phase)];
  return {.refusals = numbers.replica_refusals.load(std::memory_order_relaxed),
          .wanted = numbers.replicas_wanted.load(std::memory_order_relaxed)};
}

void Recorder::failure(const std::string& message) {
  const std::scoped_lock lock(failures_mutex_);
  const bool known = failures_.contains(message);
  ++failures_[known || failures_.size() < kDistinctFailures ? message : kOtherFailures];
}

std::vector<std::string> Recorder::failures() const {
  const std::scoped_lock lock(failures_mutex_);
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [message, count] : failures_) sorted.emplace_back(count, message);
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<std::string> lines;
  lines.reserve(sorted.size());
  for (const auto& [count, message] : sorted)
    lines.push_back(fmt::format("{} × {}", count, message));
  return lines;
}

}  // namespace lockbench::loadgen
