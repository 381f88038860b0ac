#include <fmt/format.h>

#include "cli/options/load_options.h"
#include "cli/options/value_types.h"
#include "loadgen/cluster/peers.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

/// "2:5ms"
ValueType<RankOptions::RttOfRank> rtt_of_rank() {
  using RttOfRank = RankOptions::RttOfRank;
  const auto parse = [](const std::string& text) -> tl::expected<RttOfRank, std::string> {
    const std::size_t colon = text.find(':');
    const auto rank = parse_whole(text.substr(0, colon));
    const auto rtt = parse_duration(colon == std::string::npos ? "" : text.substr(colon + 1));
    if (!rank || *rank < 0 || *rank > 100'000 || !rtt) {
      return tl::unexpected(fmt::format("\"{}\" is no RANK:D such as 2:5ms", text));
    }
    if (auto allowed = check_range(text, *rtt, 0s, 1h); !allowed) {
      return tl::unexpected(allowed.error());
    }
    return RttOfRank{static_cast<int>(*rank), *rtt};
  };
  return parsed(parse, [](const RttOfRank& of) {
    return fmt::format("{}:{}", of.rank, format_duration(of.rtt));
  });
}

}  // namespace

void RankOptions::declare(OptionList& options) {
  using Split = loadgen::Share::Split;
  options.heading("Under mpirun");
  options.add("clients-per-rank", "N", clients_per_rank, whole_number(1, 100'000),
              "clients of each rank, in place of --clients of all", "none");
  options.add("split", "NAME", split,
              one_of<Split>({{"block", Split::block}, {"cyclic", Split::cyclic}}),
              "which clients a rank has: neighbours, or every so many-th");
  options.add("rtt-of-rank", "RANK:D", rtts, rtt_of_rank(),
              "round-trip time added between this rank and private servers, in place of --rtt: a "
              "rank in another zone",
              "none");
  options.add("metrics-of-ranks", "ADDR:PORT", metrics,
              parsed(exporter::parse_listen_address, &exporter::ListenAddress::to_string),
              "each rank serves /metrics of its own clients, on PORT plus its number", "none");
}

void LoadOptions::complete_ranks(const OptionList& options) {
  const auto launched = loadgen::cluster::launched();
  const int size = launched ? launched->size : 1;
  for (const char* const name : {"clients-per-rank", "split", "rtt-of-rank", "metrics-of-ranks"}) {
    if (options.given(name) && !launched) throw UsageError("--{} is for runs under mpirun", name);
  }
  if (ranks.clients_per_rank) {
    if (options.given("clients")) {
      throw UsageError("give --clients or --clients-per-rank, not both");
    }
    workload.clients = *ranks.clients_per_rank * size;
  }
  if (ranks.metrics && (ranks.metrics->port == 0 || ranks.metrics->port + size > 65'536)) {
    throw UsageError("--metrics-of-ranks needs a port from 1 to {}", 65'536 - size);
  }
  for (const RankOptions::RttOfRank& of : ranks.rtts) {
    if (of.rank >= size) {
      throw UsageError("--rtt-of-rank: there is no rank {}; allowed: 0 to {}", of.rank, size - 1);
    }
    if (of.rtt >= workload.strategy.command_timeout) {
      throw UsageError("--rtt-of-rank must be shorter than --store-timeout");
    }
  }
  for (const auto& [store, urls] : servers) {
    if (ranks.rtts.empty() || urls.empty()) continue;
    throw UsageError("--rtt-of-rank cannot be combined with --{}: it delays private servers only",
                     store);
  }
  if (size < 2) return;
  if (options.given("resource") && workload.resource == loadgen::Resource::memory) {
    throw UsageError("--resource memory cannot be shared by {} ranks; allowed: redis, redis-fenced",
                     size);
  }
  if (workload.resource == loadgen::Resource::memory) workload.resource = loadgen::Resource::redis;
}

}  // namespace lockbench::cli
