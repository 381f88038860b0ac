#include "loadgen/cluster/part.h"

#include <fmt/format.h>

#include "loadgen/cluster/wire.h"
#include "results/file/save.h"

namespace lockbench::loadgen::cluster {
namespace {

/// The first bytes of a rank's file; the build that wrote it follows on the same line.
constexpr std::string_view kName = "lockbench.part/1 ";

std::vector<int> used_keys_of(const RunShared& run) {
  std::vector<int> keys;
  run.used.for_each([&](int key) {
    keys.push_back(key);
    return true;
  });
  return keys;
}

std::vector<CounterTally> tallies_of(const RunShared& run) {
  std::vector<CounterTally> tallies;
  if (!run.counter) return tallies;
  run.counter->for_each([&](const CounterTally& tally) {
    if (tally != CounterTally{.key = tally.key}) tallies.push_back(tally);
  });
  return tallies;
}

/// Writes what a rank has recorded of its share, or reads it and adds it to the run if `adds`.
template <bool kReads>
void pass(Wire<kReads>& wire, const Share& share, RunShared& run, bool adds) {
  Recorder& recorder = run.recorder;
  const auto each = [&](const auto& own, const auto& add) {
    auto value = kReads ? decltype(own())() : own();
    wire.pass(value);
    if (adds) add(value);
  };
  const auto each_of = [&](ShardedHistogram& histogram) {
    each([&] { return histogram.empty() ? HistogramSnapshot() : histogram.snapshot(); },
         [&](const HistogramSnapshot& more) { histogram.add(more); });
  };
  for (const Phase phase : kPhases) {
    Recorder::Histograms& histograms = recorder.histograms(phase);
    for (ShardedHistogram& timing : histograms.values) each_of(timing);
    for (Recorder::Node& node : histograms.nodes) {
      for (ShardedHistogram& taken : node.taken) each_of(taken);
      for (auto& votes : node.votes) {
        each([&] { return votes.load(); }, [&](std::uint64_t more) { votes += more; });
      }
    }
    each([&] { return recorder.service_counts(phase); },
         [&](const Counts& more) { recorder.add(phase, more); });
    for (int i = 0; i < share.count(); ++i) {
      ClientRecord& client = recorder.client(share.number(i));
      each([&] { return client.counts(phase); },
           [&](const Counts& more) { client.add(phase, more); });
    }
  }
  for (int i = 0; i < share.count(); ++i) {
    ClientWaits& waits = recorder.waits();
    const int client = share.number(i);
    each([&] { return waits.buckets_of(client); },
         [&](const auto& all) {
           for (const ClientWaits::Bucket& more : all) waits.add(client, more);
         });
  }
  each([&] { return recorder.command_snapshots(); },
       [&](const auto& all) {
         for (const auto& [command, more] : all) recorder.command(command).add(more);
       });
  each([&] { return recorder.failure_counts(); },
       [&](const auto& all) {
         for (const auto& [message, times] : all) recorder.failure(message, times);
       });
  each([&] { return recorder.replicas_wanted(); },
       [&](std::uint64_t wanted) {
         if (wanted > 0) recorder.want_replicas(wanted);
       });
  const int keys = run.workload.key_count();
  each([&] { return used_keys_of(run); },
       [&](const auto& all) {
         for (const int key : all) {
           if (key >= 0 && key < keys + run.workload.clients) run.used.mark(key);
         }
       });
  each([&] { return tallies_of(run); },
       [&](const auto& all) {
         for (const CounterTally& more : all) {
           if (run.counter && more.key >= 0 && more.key < keys) run.counter->add(more);
         }
       });
  each([&] { return run.audit.totals(); }, [&](const AuditTotals& more) { run.audit.add(more); });
}

}  // namespace

std::string record_of(RunShared& run) {
  Wire<false> wire;
  pass(wire, run.share, run, false);
  return wire.take();
}

bool absorb(const std::string& record, const Share& share, RunShared& run) {
  for (const bool adds : {false, true}) {
    Wire<true> wire(record);
    pass(wire, share, run, adds);
    if (!wire.done()) return false;
  }
  return true;
}

std::string path_of(const Order& order, int rank) {
  return fmt::format("{}.rank-{}", order.part_path, rank);
}

tl::expected<void, std::string> save(const PartFile& file) {
  const std::string path = path_of(file.order, static_cast<int>(file.part.row.rank));
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
                        file.part.row.rank < static_cast<std::uint64_t>(file.ranks);
  if (!possible) return bad("it is damaged");
  return file;
}

}  // namespace lockbench::loadgen::cluster
