#include "loadgen/cluster/record.h"

namespace lockbench::loadgen::cluster {
namespace {

constexpr auto kCounts = static_cast<std::size_t>(Count::kinds);

void add(const Samples& samples, ShardedHistogram& to) { to.add(to_snapshot(samples)); }

template <class Kind>
bool fits(std::uint8_t value) {
  return value < static_cast<std::uint8_t>(Kind::kinds);
}

bool is_phase(std::uint8_t value) { return value < kPhases.size(); }

void absorb_counts(const CountsOf& of, RunShared& run) {
  if (!is_phase(of.phase)) return;
  const auto phase = static_cast<Phase>(of.phase);
  if (of.client == CountsOf::kServices) {
    for (const auto& [kind, count] : of.counts) {
      if (kind < kCounts) run.recorder.add(phase, static_cast<Count>(kind), count);
    }
    return;
  }
  if (of.client < 0 || of.client >= run.recorder.client_count()) return;
  Counts more;
  for (const auto& [kind, count] : of.counts) {
    if (kind < kClientCounts) more.values[kind] = count;
  }
  more.longest_wait = of.longest_wait;
  more.longest_cut = of.longest_cut;
  ClientRecord& client = run.recorder.client(of.client);
  client.add(phase, more);
  if (of.state <= static_cast<std::uint8_t>(ClientState::holding)) {
    client.state.store(static_cast<ClientState>(of.state), std::memory_order_relaxed);
  }
}

}  // namespace

HistogramSnapshot to_snapshot(const Samples& samples) {
  HistogramSnapshot snapshot;
  for (const auto& [index, count] : samples.buckets) {
    if (index < snapshot.buckets.size()) snapshot.buckets[index] = count;
  }
  snapshot.overflow = samples.overflow;
  snapshot.sum = samples.sum;
  snapshot.min = samples.min;
  snapshot.max = samples.max;
  return snapshot;
}

Samples to_samples(const HistogramSnapshot& later, const HistogramSnapshot& earlier) {
  Samples samples{.buckets = {},
                  .overflow = later.overflow - earlier.overflow,
                  .sum = later.sum - earlier.sum,
                  .min = later.min,
                  .max = later.max};
  for (std::size_t i = 0; i < later.buckets.size(); ++i) {
    const std::uint64_t more = later.buckets[i] - earlier.buckets[i];
    if (more > 0) samples.buckets.emplace_back(static_cast<std::uint32_t>(i), more);
  }
  return samples;
}

Record Recording::take(bool all) {
  Record record;
  take_histograms(record);
  take_counts(record);
  take_rest(record);
  if (all) take_waits(record);
  return record;
}

bool Recording::take_samples(const ShardedHistogram& histogram, HistogramSnapshot& last,
                             Samples& samples) {
  if (histogram.empty()) return false;
  HistogramSnapshot now = histogram.snapshot();
  samples = to_samples(now, last);
  const bool any = !samples.buckets.empty() || samples.overflow > 0;
  if (any) last = std::move(now);
  return any;
}

void Recording::take_histograms(Record& record) {
  Samples samples;
  for (const Phase phase : kPhases) {
    const auto number = static_cast<std::uint8_t>(phase);
    const Recorder::Histograms& histograms = run_.recorder.histograms(phase);
    for (std::size_t i = 0; i < histograms.values.size(); ++i) {
      if (histograms.values[i].empty()) continue;
      if (!take_samples(histograms.values[i], timings_[{number, i}], samples)) continue;
      record.timings.push_back({number, static_cast<std::uint8_t>(i), std::move(samples)});
    }
    for (std::size_t node = 0; node < histograms.nodes.size(); ++node) {
      for (const Vote vote : kVotes) {
        const auto kind = static_cast<std::uint8_t>(vote);
        auto& [last, counted] = nodes_[{{number, node}, kind}];
        const std::uint64_t votes = histograms.nodes[node].count(vote);
        samples = {};
        const bool any = take_samples(histograms.nodes[node].taken_by(vote), last, samples);
        if (!any && votes == counted) continue;
        record.nodes.push_back({number, static_cast<std::uint32_t>(node), kind, votes - counted,
                                any ? std::move(samples) : Samples{}});
        counted = votes;
      }
    }
  }
  for (const auto& [command, now] : run_.recorder.command_snapshots()) {
    HistogramSnapshot& last = commands_[command];
    Samples more = to_samples(now, last);
    if (more.buckets.empty() && more.overflow == 0) continue;
    record.commands.push_back({command, std::move(more)});
    last = now;
  }
}

void Recording::take_counts(Record& record) {
  const auto take = [&](std::int32_t client, Phase phase, const Counts& now, ClientState state) {
    const auto number = static_cast<std::uint8_t>(phase);
    const bool changed_state = client >= 0 && states_[client] != state;
    const auto found = counts_.find({client, number});
    CountsOf of{.client = client,
                .phase = number,
                .state = static_cast<std::uint8_t>(state),
                .longest_wait = now.longest_wait,
                .longest_cut = now.longest_cut};
    for (std::size_t i = 0; i < kCounts; ++i) {
      const std::uint64_t last = found == counts_.end() ? 0 : found->second.values[i];
      if (now.values[i] != last) {
        of.counts.emplace_back(static_cast<std::uint8_t>(i), now.values[i] - last);
      }
    }
    const bool longer = now.longest_wait > Duration::zero() || now.longest_cut > Duration::zero();
    const bool new_longest = found == counts_.end()
                                 ? longer
                                 : now.longest_wait != found->second.longest_wait ||
                                       now.longest_cut != found->second.longest_cut;
    if (of.counts.empty() && !new_longest && !changed_state) return;
    counts_.insert_or_assign({client, number}, now);
    if (client >= 0) states_[client] = state;
    record.counts.push_back(std::move(of));
  };
  for (const Phase phase : kPhases) {
    take(CountsOf::kServices, phase, run_.recorder.service_counts(phase), ClientState::idle);
  }
  for (int i = 0; i < run_.share.count(); ++i) {
    const int client = run_.share.number(i);
    const ClientState state = run_.recorder.client(client).state.load(std::memory_order_relaxed);
    for (const Phase phase : kPhases) {
      take(client, phase, run_.recorder.client(client).counts(phase), state);
    }
  }
}

void Recording::take_rest(Record& record) {
  for (const auto& [message, times] : run_.recorder.failure_counts()) {
    std::uint64_t& last = failures_[message];
    if (times != last) record.failures.emplace_back(message, times - last);
    last = times;
  }
  run_.used.for_each([&](int key) {
    const auto at = static_cast<std::size_t>(key);
    if (at >= used_.size()) used_.resize(at + 1);
    if (!used_[at]) record.used_keys.push_back(key);
    used_[at] = true;
    return true;
  });
  if (run_.counter) {
    run_.counter->for_each([&](const CounterTally& now) {
      const auto found = tallies_.find(now.key);
      const CounterTally last =
          found == tallies_.end() ? CounterTally{.key = now.key} : found->second;
      if (now == last) return;
      CounterTally more = now;
      more.accepted -= last.accepted;
      more.rejected_stale -= last.rejected_stale;
      more.unknown -= last.unknown;
      record.tallies.push_back(more);
      tallies_.insert_or_assign(now.key, now);
    });
  }
  const std::uint64_t regressions = run_.audit.fence_regressions();
  record.fence_regressions = regressions - fence_regressions_;
  fence_regressions_ = regressions;
  record.replicas_wanted = run_.recorder.replicas_wanted();
  const std::uint64_t measured = run_.measured_sections;
  record.measured_sections = measured - measured_sections_;
  measured_sections_ = measured;
}

void Recording::take_waits(Record& record) const {
  for (int i = 0; i < run_.share.count(); ++i) {
    WaitsOf of{.client = run_.share.number(i)};
    run_.recorder.waits().for_each(
        of.client, [&](std::size_t bucket, bool censored, std::uint32_t waits) {
          (censored ? of.censored : of.complete).emplace_back(bucket, waits);
        });
    if (!of.complete.empty() || !of.censored.empty()) record.waits.push_back(std::move(of));
  }
}

void absorb(const Record& record, RunShared& run) {
  Recorder& recorder = run.recorder;
  for (const TimingSamples& of : record.timings) {
    if (!is_phase(of.phase) || !fits<Timing>(of.timing)) continue;
    add(of.samples,
        recorder.histograms(static_cast<Phase>(of.phase))[static_cast<Timing>(of.timing)]);
  }
  for (const CommandSamples& of : record.commands) {
    add(of.samples, recorder.command(of.command));
  }
  for (const NodeSamples& of : record.nodes) {
    if (!is_phase(of.phase) || of.vote >= kVotes.size()) continue;
    auto& nodes = recorder.histograms(static_cast<Phase>(of.phase)).nodes;
    if (of.node >= nodes.size()) continue;
    nodes[of.node].votes.at(of.vote).fetch_add(of.votes, std::memory_order_relaxed);
    if (!of.samples.buckets.empty()) add(of.samples, nodes[of.node].taken.at(of.vote));
  }
  for (const CountsOf& of : record.counts) absorb_counts(of, run);
  for (const auto& [message, times] : record.failures) recorder.failure(message, times);
  const int keys = run.workload.key_count();
  for (const std::int32_t key : record.used_keys) {
    if (key >= 0 && key < keys + run.workload.clients) run.used.mark(key);
  }
  for (const CounterTally& tally : record.tallies) {
    if (run.counter && tally.key >= 0 && tally.key < keys) run.counter->add(tally);
  }
  run.audit.add({.fence_regressions = record.fence_regressions});
  if (record.replicas_wanted > 0) recorder.want_replicas(record.replicas_wanted);
  run.measured_sections.fetch_add(record.measured_sections, std::memory_order_relaxed);
  for (const WaitsOf& of : record.waits) {
    for (const auto& [bucket, waits] : of.complete) {
      recorder.waits().add(of.client, bucket, false, waits);
    }
    for (const auto& [bucket, waits] : of.censored) {
      recorder.waits().add(of.client, bucket, true, waits);
    }
  }
}

}  // namespace lockbench::loadgen::cluster
