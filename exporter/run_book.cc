#include "exporter/run_book.h"

#include <algorithm>

#include "loadgen/run/worker.h"
#include "results/stats/statistics.h"

namespace lockbench::exporter {
namespace {

/// What the result file leaves out at a run's end is left out here too, so that both agree.
constexpr std::array kCounted{loadgen::Phase::unmeasured, loadgen::Phase::measured};

void add_histograms(const loadgen::Recorder::Histograms& from, Totals& to) {
  for (std::size_t i = 0; i < loadgen::kOutcomes.size(); ++i)
    to.acquire[i].add(from.acquire[i].snapshot());
  to.hold.add(from.hold.snapshot());
  to.release.add(from.release.snapshot());
  to.handoff.add(from.handoff.snapshot());
  to.schedule_lag.add(from.schedule_lag.snapshot());
  to.loss_to_knowledge.add(from.loss_to_knowledge.snapshot());
  to.renewal_duration.add(from.renewal_duration.snapshot());
  to.renewal_slip.add(from.renewal_slip.snapshot());
  to.renewal_margin.add(from.renewal_margin.snapshot());
  to.quorum_validity.add(from.validity.snapshot());
  to.nodes.resize(std::max(to.nodes.size(), from.nodes.size()));
  for (std::size_t node = 0; node < from.nodes.size(); ++node) {
    for (std::size_t vote = 0; vote < loadgen::kVotes.size(); ++vote) {
      to.nodes[node].votes[vote] += from.nodes[node].count(loadgen::kVotes[vote]);
      to.nodes[node].taken[vote].add(from.nodes[node].taken[vote].snapshot());
    }
  }
}

void add(const loadgen::ServiceCounts& more, loadgen::ServiceCounts& to) {
  to.commands += more.commands;
  to.renewals += more.renewals;
  to.renewals_failed += more.renewals_failed;
  to.renewals_refused += more.renewals_refused;
}

void add(const loadgen::QuorumCounts& more, loadgen::QuorumCounts& to) {
  to.rounds += more.rounds;
  to.split_votes += more.split_votes;
}

/// Of a run that may be under way.
Totals totals_of(const loadgen::RunShared& run) {
  Totals totals;
  for (const loadgen::Phase phase : kCounted) {
    add_histograms(run.recorder.histograms(phase), totals);
    totals.counts += run.recorder.totals(phase);
    add(run.recorder.service_counts(phase), totals.services);
    add(run.recorder.quorum_counts(phase), totals.quorum);
  }
  // The audit spans the whole run.
  for (const loadgen::Phase phase : loadgen::kPhases) {
    totals.stale_rejected += run.recorder.totals(phase)[loadgen::Count::stale_rejected];
  }
  totals.overlaps = run.audit.overlaps();
  totals.fence_regressions = run.audit.fence_regressions();
  return totals;
}

double jain_of(const loadgen::RunShared& run) {
  std::vector<std::uint64_t> sections;
  sections.reserve(static_cast<std::size_t>(run.recorder.client_count()));
  std::uint64_t all = 0;
  for (int client = 0; client < run.recorder.client_count(); ++client) {
    std::uint64_t own = 0;
    for (const loadgen::Phase phase : kCounted) {
      own += run.recorder.client_counts(client, phase)[loadgen::Count::sections];
    }
    all += own;
    sections.push_back(own);
  }
  return all == 0 ? 0 : results::jain_index(sections);
}

}  // namespace

NodeTotals& NodeTotals::operator+=(const NodeTotals& more) {
  for (std::size_t vote = 0; vote < loadgen::kVotes.size(); ++vote) {
    votes[vote] += more.votes[vote];
    taken[vote] += more.taken[vote];
  }
  return *this;
}

Totals& Totals::operator+=(const Totals& more) {
  for (std::size_t i = 0; i < acquire.size(); ++i) acquire[i] += more.acquire[i];
  for (const auto part :
       {&Totals::hold, &Totals::release, &Totals::handoff, &Totals::schedule_lag,
        &Totals::loss_to_knowledge, &Totals::renewal_duration, &Totals::renewal_slip,
        &Totals::renewal_margin, &Totals::quorum_validity}) {
    this->*part += more.*part;
  }
  nodes.resize(std::max(nodes.size(), more.nodes.size()));
  for (std::size_t node = 0; node < more.nodes.size(); ++node) nodes[node] += more.nodes[node];
  counts += more.counts;
  add(more.services, services);
  add(more.quorum, quorum);
  for (const auto sum : {&Totals::overlaps, &Totals::fence_regressions, &Totals::stale_rejected,
                         &Totals::lost_updates}) {
    this->*sum += more.*sum;
  }
  return *this;
}

RunBook::RunBook(const std::vector<const Descriptor*>& strategies, int nodes) {
  for (const Descriptor* strategy : strategies) {
    Account& account = entries_.emplace_back().account;
    account.strategy = strategy;
    if (strategy->traits.nodes > 1) account.totals.nodes.resize(static_cast<std::size_t>(nodes));
  }
}

std::vector<Account> RunBook::accounts() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Account> accounts;
  accounts.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    Account& account = accounts.emplace_back(entry.account);
    if (entry.live == nullptr) continue;
    const loadgen::RunShared& run = *entry.live;
    account.totals += totals_of(run);
    account.present.holders = run.recorder.clients_in(loadgen::ClientState::holding);
    account.present.waiters = run.recorder.clients_in(loadgen::ClientState::waiting);
    account.present.clients = run.recorder.client_count();
    account.present.target_sections_per_second = run.workload.rate.value_or(0);
    account.present.jain = jain_of(run);
  }
  return accounts;
}

void RunBook::run_begins(const loadgen::RunShared& run) {
  const std::scoped_lock lock(mutex_);
  Entry* const entry = find(run.strategy.name);
  if (entry == nullptr) return;
  entry->live = &run;
  entry->account.present.ttl_seconds = seconds(run.workload.ttl);
}

void RunBook::run_ends(const loadgen::RunShared& run, const results::Run* result) {
  const std::scoped_lock lock(mutex_);
  Entry* const entry = find(run.strategy.name);
  if (entry == nullptr || entry->live != &run) return;
  entry->live = nullptr;
  entry->account.totals += totals_of(run);
  entry->account.present.jain = jain_of(run);
  if (result != nullptr) entry->account.totals.lost_updates += result->audit.lost_updates;
}

void RunBook::not_connected(const Descriptor& strategy, Duration after) {
  loadgen::HistogramSnapshot one;
  one.record(after);
  const std::scoped_lock lock(mutex_);
  if (Entry* entry = find(strategy.name)) {
    entry->account.totals.acquire[static_cast<std::size_t>(AcquireOutcome::failed)].add(one);
  }
}

void RunBook::fault_changes(const loadgen::RunShared& run, loadgen::FaultKind fault, bool active) {
  const std::scoped_lock lock(mutex_);
  if (Entry* const entry = find(run.strategy.name)) {
    entry->account.present.faults.at(static_cast<std::size_t>(fault)) = active;
  }
}

RunBook::Entry* RunBook::find(std::string_view strategy) {
  const auto found = std::find_if(
      entries_.begin(), entries_.end(),
      [&](const Entry& entry) { return entry.account.strategy->name == strategy; });
  return found == entries_.end() ? nullptr : &*found;
}

}  // namespace lockbench::exporter
