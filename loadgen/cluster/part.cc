#include "loadgen/cluster/part.h"

#include <fmt/format.h>

#include <algorithm>

#include "loadgen/cluster/wire.h"
#include "results/file/save.h"

namespace lockbench::loadgen::cluster {
namespace {

/// The first bytes of a rank's file; the build that wrote it follows on the same line.
constexpr std::string_view kName = "lockbench.part/1 ";

constexpr auto kCountKinds = static_cast<std::size_t>(Count::kinds);

void add(const Samples& samples, ShardedHistogram& to) {
  // The bounds of none would count as samples.
  if (!samples.buckets.empty() || samples.overflow > 0) to.add(to_snapshot(samples));
}

bool is_phase(std::uint8_t value) { return value < kPhases.size(); }

void absorb_counts(const CountsOf& of, RunShared& run) {
  if (!is_phase(of.phase)) return;
  const auto phase = static_cast<Phase>(of.phase);
  if (of.client == CountsOf::kServices) {
    for (const auto& [kind, count] : of.counts) {
      if (kind < kCountKinds) run.recorder.add(phase, static_cast<Count>(kind), count);
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
  run.recorder.client(of.client).add(phase, more);
}

/// All of a run, each at its place.
std::vector<ShardedHistogram*> histograms_of(Recorder& recorder) {
  std::vector<ShardedHistogram*> all;
  for (const Phase phase : kPhases) {
    for (ShardedHistogram& timing : recorder.histograms(phase).values) all.push_back(&timing);
  }
  for (const Phase phase : kPhases) {
    for (Recorder::Node& node : recorder.histograms(phase).nodes) {
      for (ShardedHistogram& taken : node.taken) all.push_back(&taken);
    }
  }
  return all;
}

std::vector<std::atomic<std::uint64_t>*> votes_of(Recorder& recorder) {
  std::vector<std::atomic<std::uint64_t>*> all;
  for (const Phase phase : kPhases) {
    for (Recorder::Node& node : recorder.histograms(phase).nodes) {
      for (auto& votes : node.votes) all.push_back(&votes);
    }
  }
  return all;
}

void take_counts(const RunShared& run, Record& record) {
  const auto take = [&record](std::int32_t client, Phase phase, const Counts& counts) {
    CountsOf of{.client = client,
                .phase = static_cast<std::uint8_t>(phase),
                .counts = {},
                .longest_wait = counts.longest_wait,
                .longest_cut = counts.longest_cut};
    for (std::size_t i = 0; i < kCountKinds; ++i) {
      const std::uint64_t count = counts.values[i];
      if (count > 0) of.counts.emplace_back(static_cast<std::uint8_t>(i), count);
    }
    const bool waited = std::max(of.longest_wait, of.longest_cut) > Duration::zero();
    if (waited || !of.counts.empty()) record.counts.push_back(std::move(of));
  };
  for (const Phase phase : kPhases) {
    take(CountsOf::kServices, phase, run.recorder.service_counts(phase));
    for (int i = 0; i < run.share.count(); ++i) {
      const int client = run.share.number(i);
      take(client, phase, run.recorder.client(client).counts(phase));
    }
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

Samples to_samples(const HistogramSnapshot& snapshot) {
  Samples samples{.buckets = {},
                  .overflow = snapshot.overflow,
                  .sum = snapshot.sum,
                  .min = snapshot.min,
                  .max = snapshot.max};
  for (std::size_t i = 0; i < snapshot.buckets.size(); ++i) {
    const std::uint64_t count = snapshot.buckets[i];
    if (count > 0) samples.buckets.emplace_back(static_cast<std::uint32_t>(i), count);
  }
  return samples;
}

Record record_of(RunShared& run) {
  Record record;
  Recorder& recorder = run.recorder;
  std::uint32_t place = 0;
  for (const ShardedHistogram* histogram : histograms_of(recorder)) {
    const std::uint32_t at = place++;
    if (histogram->empty()) continue;
    record.histograms.emplace_back(at, to_samples(histogram->snapshot()));
  }
  place = 0;
  for (const auto* votes : votes_of(recorder)) {
    if (const std::uint64_t count = votes->load()) record.votes.emplace_back(place, count);
    ++place;
  }
  for (const auto& [command, times] : recorder.command_snapshots()) {
    record.commands.emplace_back(command, to_samples(times));
  }
  take_counts(run, record);
  for (const auto& [message, times] : recorder.failure_counts()) {
    record.failures.emplace_back(message, times);
  }
  run.used.for_each([&](int key) { record.used_keys.push_back(key); });
  if (run.counter) {
    run.counter->for_each([&](const CounterTally& tally) {
      if (tally != CounterTally{.key = tally.key}) record.tallies.push_back(tally);
    });
  }
  record.audit = run.audit.totals();
  record.replicas_wanted = recorder.replicas_wanted();
  for (int i = 0; i < run.share.count(); ++i) {
    const int client = run.share.number(i);
    recorder.waits().for_each(client, [&](std::size_t bucket, bool censored, std::uint32_t waits) {
      record.waits.push_back({client, static_cast<std::uint32_t>(bucket), censored, waits});
    });
  }
  return record;
}

void absorb(const Record& record, RunShared& run) {
  Recorder& recorder = run.recorder;
  const auto histograms = histograms_of(recorder);
  for (const auto& [place, samples] : record.histograms) {
    if (place < histograms.size()) add(samples, *histograms[place]);
  }
  const auto all_votes = votes_of(recorder);
  for (const auto& [place, votes] : record.votes) {
    if (place < all_votes.size()) *all_votes[place] += votes;
  }
  for (const auto& [command, samples] : record.commands) add(samples, recorder.command(command));
  for (const CountsOf& of : record.counts) absorb_counts(of, run);
  for (const auto& [message, times] : record.failures) recorder.failure(message, times);
  const int keys = run.workload.key_count();
  for (const std::int32_t key : record.used_keys) {
    if (key >= 0 && key < keys + run.workload.clients) run.used.mark(key);
  }
  for (const CounterTally& tally : record.tallies) {
    if (run.counter && tally.key >= 0 && tally.key < keys) run.counter->add(tally);
  }
  run.audit.add(record.audit);
  if (record.replicas_wanted > 0) recorder.want_replicas(record.replicas_wanted);
  for (const WaitsOf& of : record.waits) {
    recorder.waits().add(of.client, of.bucket, of.censored, of.waits);
  }
}

std::string path_of(const Order& order, int rank) {
  return fmt::format("{}.rank-{}", order.part_path, rank);
}

tl::expected<void, std::string> save(const PartFile& file) {
  const std::string path = path_of(file.order, file.part.rank);
  if (auto writable = results::check_writable(path); !writable) return writable;
  return results::replace(path, fmt::format("{}{}\n", kName, file.hello.build) + to_bytes(file));
}

bool is_part(const std::string& text) { return text.starts_with(kName); }

tl::expected<PartFile, std::string> read_part(const std::string& text, const std::string& build) {
  const auto bad = [](const char* why) { return tl::unexpected<std::string>(why); };
  if (!is_part(text)) return bad("it is no file of a rank");
  const std::string line = fmt::format("{}{}\n", kName, build);
  if (!text.starts_with(line)) {
    return bad("another build of lockbench wrote it, and only that can read it");
  }
  PartFile file;
  if (!from_bytes(std::string_view(text).substr(line.size()), file)) return bad("it is damaged");
  constexpr int kMost = 10'000'000, kMostRanks = 100'000;
  const Workload& workload = file.order.workload;
  const bool possible = workload.clients > 0 && workload.clients <= kMost && workload.keys > 0 &&
                        workload.keys <= Trace::kMostKeys * 8 && file.ranks > 0 &&
                        file.ranks <= kMostRanks && file.nodes >= 0 && file.nodes < 1000 &&
                        file.part.rank >= 0 && file.part.rank < file.ranks;
  if (!possible) return bad("it is damaged");
  return file;
}

}  // namespace lockbench::loadgen::cluster
