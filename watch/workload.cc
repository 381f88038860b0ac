#include "watch/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "loadgen/run/duration_distribution.h"
#include "results/file/save.h"

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;

/// With fewer holdings there is no 99th percentile.
constexpr std::uint64_t kFewestHolds = 100;
/// The ranges that the commands accept.
constexpr std::uint64_t kMostClients = 10'000, kMostKeys = 10'000'000;
constexpr double kLowestRate = 0.001, kHighestRate = 1e7, kHighestSkew = 10;
constexpr Duration kShortestWork = 1us, kShortestTtl = 1ms, kLongestTtl = 24h;

/// A chi-squared test at the 1 % level, with the cube-root approximation of Wilson and Hilferty
/// (1931).
bool may_be_uniform(const std::vector<std::uint64_t>& by_lock, double all) {
  constexpr double kNormal99 = 2.326;
  const double mean = all / static_cast<double>(by_lock.size());
  double squares = 0;
  for (const std::uint64_t count : by_lock)
    squares += std::pow(static_cast<double>(count) - mean, 2);
  const double free = static_cast<double>(by_lock.size()) - 1;
  const double part = 2 / (9 * free);
  return squares / mean <= free * std::pow(1 - part + kNormal99 * std::sqrt(part), 3);
}

/// Counts of the frequent locks, the largest first. Rarely taken locks are left out: their ranks
/// are due to chance and would make the skew look larger.
std::vector<double> ranked(std::vector<std::uint64_t> by_lock) {
  constexpr std::size_t kFewestRanks = 5, kMostRanks = 100'000;
  constexpr std::uint64_t kFewestOfRank = 10;
  std::ranges::sort(by_lock, std::greater<>());
  const auto seldom =
      std::ranges::find_if(by_lock, [](std::uint64_t count) { return count < kFewestOfRank; });
  auto ranks = static_cast<std::size_t>(seldom - by_lock.begin());
  if (ranks < kFewestRanks) ranks = by_lock.size();
  by_lock.resize(std::min(ranks, kMostRanks));
  return {by_lock.begin(), by_lock.end()};
}

double rounded(double value, int digits) {
  if (value == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) + 1 - digits);
  // Dividing by a whole power of ten avoids 0.30000000000000004.
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit)
                  : std::round(value / unit) * unit;
}

Duration rounded(Duration value, int digits) {
  return Duration(std::llround(rounded(static_cast<double>(value.count()), digits)));
}

/// A TTL is read shortly after the grant, so the largest of nearly equal ones is the one that was
/// set.
std::optional<Duration> ttl_of(const loadgen::HistogramSnapshot& ttl,
                               std::vector<std::string>& remarks) {
  if (ttl.count() == 0) {
    remarks.emplace_back("No TTL was seen.");
    return std::nullopt;
  }
  const Duration median = ttl.percentile(0.5);
  const bool alike = seconds(ttl.max) <= 1.03 * seconds(median);
  if (seconds(ttl.percentile(0.9)) > 1.2 * seconds(ttl.percentile(0.1))) {
    remarks.push_back(fmt::format("The TTL differs, from {} to {}: ttl is the median.",
                                  format_duration(rounded(ttl.percentile(0.1), 2)),
                                  format_duration(rounded(ttl.percentile(0.9), 2))));
  }
  return std::clamp(rounded(alike ? ttl.max : median, alike ? 3 : 2), kShortestTtl, kLongestTtl);
}

/// Many libraries draw a new token for each acquisition; then the number of owners is not that of
/// clients.
std::uint64_t clients_of(const Usage& usage, std::vector<std::string>& remarks) {
  std::uint64_t clients = usage.owners;
  if (2 * usage.owners > usage.acquisitions || usage.owners == 0) {
    clients = usage.most_at_once;
    remarks.push_back(
        fmt::format("Nearly every acquisition has a new owner, so clients is the highest number "
                    "that {} at once.",
                    usage.waits_known ? "held or waited for locks" : "held locks"));
  }
  if (clients > kMostClients) {
    remarks.push_back(
        fmt::format("There were {} clients: clients is the most that capacity takes.", clients));
  }
  return std::clamp<std::uint64_t>(clients, 1, kMostClients);
}

/// Whether acquisitions come as regularly as with constant arrival.
bool arrives_constantly(const Usage& usage, std::vector<std::string>& remarks) {
  constexpr double kRegular = 0.3, kDeviations = 3;
  if (!usage.dispersion) {
    remarks.emplace_back(
        "Too few seconds were seen to tell how sections arrive: Poisson is assumed.");
    return false;
  }
  const double by_chance = kDeviations * std::sqrt(2 / std::max(1.0, seconds(usage.watched) - 1));
  if (*usage.dispersion > 1 + by_chance) {
    remarks.push_back(
        fmt::format("Sections came in bursts: their number in a second varies {:.1f} times as much "
                    "as with Poisson arrivals, with which waits are shorter.",
                    *usage.dispersion));
  }
  return *usage.dispersion < kRegular;
}

std::vector<double> shares() {
  std::vector<double> shares;
  for (int percent = 0; percent < 99; ++percent) shares.push_back(percent / 100.0);
  for (int part = 990; part < 999; ++part) shares.push_back(part / 1000.0);
  shares.insert(shares.end(), {0.999, 0.9995, 0.9999, 1});
  return shares;
}

std::vector<std::pair<double, Duration>> quantiles_of(const loadgen::HistogramSnapshot& hold,
                                                      std::vector<std::string>& remarks) {
  constexpr Duration kLongest = loadgen::DurationDistribution::kLongestDraw;
  std::vector<std::pair<double, Duration>> quantiles;
  for (const double share : shares()) {
    Duration value = std::clamp(hold.percentile(share), hold.min, hold.max);
    if (share == 0) value = hold.min;
    if (share == 1) value = hold.max;
    quantiles.emplace_back(share, std::min(value, kLongest));
  }
  if (hold.max > kLongest) remarks.emplace_back("Holdings of more than an hour count as one hour.");
  return quantiles;
}

void remark_accuracy(const Usage& usage, std::vector<std::string>& remarks) {
  if (usage.accuracy == Accuracy::at_least) {
    remarks.emplace_back(
        "Changes that followed each other closely were seen as one, or some were missed: on "
        "contended locks the rate is at least this, and the hold at most.");
  }
  if (usage.accuracy == Accuracy::sampled) {
    remarks.emplace_back(
        "The locks were sampled: holdings shorter than the time between two looks may be missing, "
        "so "
        "the rate is at least this, and the hold at most.");
  }
  if (usage.queued) {
    remarks.emplace_back(
        "Waiters are served in order: give choose fair = true if that must stay so.");
  }
}

/// JSON escapes strings as TOML does.
std::string toml_string(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

double fit_zipf(const std::vector<std::uint64_t>& by_lock) {
  double all = 0;
  for (const std::uint64_t count : by_lock) all += static_cast<double>(count);
  if (by_lock.size() < 2 || all == 0 || may_be_uniform(by_lock, all)) return 0;
  const std::vector<double> counts = ranked(by_lock);
  std::vector<double> logs;
  double taken = 0, of_logs = 0;
  for (const double count : counts) {
    logs.push_back(std::log(static_cast<double>(logs.size() + 1)));
    taken += count;
    of_logs += count * logs.back();
  }
  // The likelihood is greatest where the mean logarithm of the rank equals its expectation, which
  // shrinks as the exponent grows.
  double low = 0, high = kHighestSkew;
  for (int halvings = 0; halvings < 40; ++halvings) {
    const double middle = (low + high) / 2;
    double weights = 0, expected = 0;
    for (const double log : logs) {
      const double weight = std::exp(-middle * log);
      weights += weight;
      expected += weight * log;
    }
    (expected / weights > of_logs / taken ? low : high) = middle;
  }
  return (low + high) / 2;
}

tl::expected<ObservedWorkload, std::string> workload_of(const Usage& usage) {
  const std::uint64_t holds = usage.hold.count();
  if (holds < kFewestHolds) {
    return tl::unexpected(
        fmt::format("{} holding{} seen to end, and a workload takes {}: watch for "
                    "longer",
                    holds, holds == 1 ? " was" : "s were", kFewestHolds));
  }
  if (usage.watched < 1s || usage.acquisitions == 0) {
    return tl::unexpected(std::string(
        usage.acquisitions == 0 ? "no acquisition was seen, so there is no rate: watch for longer"
                                : "less than a second was seen, so there is no rate: watch for "
                                  "longer"));
  }
  ObservedWorkload workload;
  std::vector<std::string>& remarks = workload.remarks;
  const auto acquisitions = static_cast<double>(usage.acquisitions);
  workload.rate =
      std::clamp(rounded(acquisitions / seconds(usage.watched), 4), kLowestRate, kHighestRate);
  workload.constant_arrival = arrives_constantly(usage, remarks);
  workload.clients = clients_of(usage, remarks);
  workload.keys = std::clamp<std::uint64_t>(
      std::max<std::uint64_t>(usage.locks, usage.by_lock.size()), 1, kMostKeys);
  workload.key_skew = std::round(fit_zipf(usage.by_lock) * 1000) / 1000;
  workload.work_p50 = std::max(kShortestWork, rounded(usage.hold.percentile(0.5), 3));
  workload.work_p99 = std::max(kShortestWork, rounded(usage.hold.percentile(0.99), 3));
  workload.ttl = ttl_of(usage.ttl, remarks);
  workload.shared_share =
      std::min(1.0, rounded(static_cast<double>(usage.shared) / acquisitions, 3));
  workload.hold = quantiles_of(usage.hold, remarks);
  remark_accuracy(usage, remarks);
  return workload;
}

std::string quantiles_text(const ObservedWorkload& workload) {
  std::string text = "# Time for which locks were held: a share of all, and at most how long.\n";
  for (const auto& [share, value] : workload.hold) {
    text += fmt::format("{} {}ns\n", share, value.count());
  }
  return text;
}

std::string toml_text(const ObservedWorkload& workload, std::string_view hold_file) {
  std::string text = "# What lockbench watch saw. For --config of run, capacity and choose.\n";
  for (const std::string& remark : workload.remarks) text += fmt::format("# {}\n", remark);
  text += fmt::format("clients = {}\nkeys = {}\nkey-skew = {}\n", workload.clients, workload.keys,
                      workload.key_skew);
  std::string section =
      fmt::format("hold = {}\n", toml_string(fmt::format("quantiles:{}", hold_file)));
  if (workload.ttl)
    section += fmt::format("ttl = {}\n", toml_string(format_duration(*workload.ttl)));
  text += fmt::format("\n[run]\nrate = {}\narrival = \"{}\"\n{}", workload.rate,
                      workload.constant_arrival ? "constant" : "poisson", section);
  if (workload.shared_share > 0) text += fmt::format("shared-share = {}\n", workload.shared_share);
  text += fmt::format("\n[capacity]\nplanned-rate = {}\n{}", workload.rate, section);
  text += fmt::format("\n[choose]\nrate = {}\n", workload.rate);
  text += fmt::format("work-time-p50 = {}\n", toml_string(format_duration(workload.work_p50)));
  text += fmt::format("work-time-p99 = {}\n", toml_string(format_duration(workload.work_p99)));
  if (workload.shared_share > 0) text += "shared = true\n";
  return text;
}

tl::expected<void, std::string> write_workload(const ObservedWorkload& workload,
                                               const std::string& path) {
  std::error_code error;
  // An absolute path, so that the file works in any folder.
  std::filesystem::path hold = std::filesystem::absolute(path, error);
  if (error) return tl::unexpected(fmt::format("{}: {}", path, error.message()));
  const bool is_taken = hold.extension() == ".hold";
  hold.replace_extension(is_taken ? ".hold.hold" : ".hold");
  // Write the workload last, so that it never names a missing quantiles file.
  if (auto done = results::replace(hold, quantiles_text(workload)); !done) return done;
  return results::replace(path, toml_text(workload, hold.string()));
}

}  // namespace lockbench::watch
