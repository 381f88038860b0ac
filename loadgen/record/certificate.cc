#include "loadgen/record/certificate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

namespace lockbench::loadgen {
namespace {

/// Empty if the file is missing or unreadable: unlike a stream's buffer, getline does not throw
/// then.
std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');
  return text;
}

/// In seconds, from the text of a group's cpu.stat: a name and a number on each line.
std::optional<double> parse_throttled(const std::string& stat) {
  std::istringstream lines(stat);
  std::string name;
  double number = 0;
  while (lines >> name >> number) {
    if (name == "throttled_usec") return number * 1e-6;
  }
  return std::nullopt;
}

// Above this share of all cores, the generator is the bottleneck.
constexpr double kHighestCpuShare = 0.9;
// So is a full thread that clients share, if servers still have time for clients.
constexpr double kFullThreadShare = 0.95, kBusyServerShare = 0.8, kFullMachineShare = 0.9;
// Steal and other programs delay clients and servers by about the time that they take.
constexpr double kHighestStealShare = 0.02, kHighestOtherShare = 0.1;
// A CPU limit stops threads for tens of milliseconds at a time. A share of the wall time.
constexpr double kHighestThrottledShare = 0.02;
// The kernel counts the machine's CPU in ticks of a few milliseconds.
constexpr double kTickNoiseSeconds = 0.05;
// Lateness above the timers' noise matters from this share of the measured wait,
constexpr double kHighestLagShare = 0.2;
constexpr Duration kLagNoise = std::chrono::milliseconds(1);
// and within that noise from this share: most of the figure is then the generator's.
constexpr double kHighestNoiseShare = 0.5;
constexpr std::array kLagQuantiles{0.5, 0.99};
// A process that stands still holds up all clients once, which only their longest waits show. A
// busy machine lets a thread wait for some tens of milliseconds.
constexpr Duration kStandstillNoise = std::chrono::milliseconds(50);
// Most of an acquisition is then the way to the client program and back.
constexpr double kHighestEchoShare = 0.5;
constexpr double kClockJumpSeconds = 0.05;
constexpr double kOverrunNoise = 0.05, kHighestOverrunShare = 0.05;

/// Whether the lag is above `noise` and above this share of the wait for the lock. Waits count from
/// the intended start, so the lag is a part of them.
bool distorts(const HistogramSnapshot& lag, const HistogramSnapshot& acquire, double quantile,
              Duration noise, double highest_share) {
  const Duration late = lag.percentile(quantile);
  const auto measured = static_cast<double>(acquire.percentile(quantile).count());
  return late > noise && static_cast<double>(late.count()) > highest_share * measured;
}

bool is_too_late(const HistogramSnapshot& lag, const RunEvidence& evidence) {
  // A lock in this process takes less time than any timer needs to wake its client.
  const bool noise_counts = evidence.has_store && evidence.acquire.count() > 0;
  return std::any_of(kLagQuantiles.begin(), kLagQuantiles.end(), [&](double quantile) {
    const HistogramSnapshot& acquire = evidence.acquire;
    return distorts(lag, acquire, quantile, kLagNoise, kHighestLagShare) ||
           (noise_counts && distorts(lag, acquire, quantile, Duration::zero(), kHighestNoiseShare));
  });
}

/// Whether the longest wait is in good part that of a process that stood still.
bool stood_still(const RunEvidence& evidence) {
  const auto longest = static_cast<double>(evidence.acquire.max.count());
  return evidence.acquire.count() > 0 && evidence.stood_still > kStandstillNoise &&
         static_cast<double>(evidence.stood_still.count()) > kHighestLagShare * longest;
}

/// Whether leases may be lost as the generator renews late, rather than as the store answers late.
bool renews_too_late(const RunEvidence& evidence) {
  // Redisson's interval is a third of the TTL, so two thirds are left for a renewal that is late.
  constexpr int kTtlPerSlip = 6;
  const Duration slip = evidence.renewal_slip.max;
  return slip > evidence.ttl / kTtlPerSlip && slip > 2 * evidence.renewal_duration.max;
}

std::int64_t p99_us(const HistogramSnapshot& histogram) {
  return std::chrono::round<std::chrono::microseconds>(histogram.percentile(0.99)).count();
}

using Invalid = std::function<void(std::string reason)>;

/// Records the shares of the machine's CPU, and judges those that other programs and machines took.
void certify_machine(const RunEvidence& evidence, results::Generator& generator,
                     const Invalid& invalid) {
  const auto& [cpu, pressure_seconds, throttled_seconds] = evidence.machine;
  if (pressure_seconds && evidence.wall_seconds > 0) {
    // The two clocks are not read at the same instant.
    generator.pressure_share = std::min(1.0, *pressure_seconds / evidence.wall_seconds);
  }
  if (stood_still(evidence)) {
    invalid(
        fmt::format("the load generator stood still for {:.0f} ms, with a longest wait of {:.0f} "
                    "ms: it was stopped, or had no CPU",
                    1e3 * seconds(evidence.stood_still), 1e3 * seconds(evidence.acquire.max)));
  }
  if (throttled_seconds && *throttled_seconds > kHighestThrottledShare * evidence.wall_seconds) {
    invalid(fmt::format(
        "a CPU limit held threads up for {:.2f} s: raise the limit of the container or service "
        "(docker --cpus, limits.cpu, CPUQuota)",
        *throttled_seconds));
  }
  if (!cpu || cpu->total <= 0) return;
  generator.machine_cpu_share = cpu->busy / cpu->total;
  generator.steal_share = cpu->stolen / cpu->total;
  if (cpu->stolen > kHighestStealShare * cpu->total + kTickNoiseSeconds) {
    invalid(fmt::format("other virtual machines took {:.1f} % of the CPU (steal)",
                        100 * *generator.steal_share));
  }
  if (!evidence.private_cpu_seconds) return;
  const double ours = evidence.cpu_seconds + *evidence.private_cpu_seconds;
  const double others = std::max(0.0, cpu->programs - ours);
  generator.other_cpu_share = others / cpu->total;
  if (others > kHighestOtherShare * cpu->total + kTickNoiseSeconds) {
    invalid(fmt::format("other programs used {:.0f} % of the machine's CPU",
                        100 * *generator.other_cpu_share));
  }
}

/// Records and judges how busy the clients' threads are. In a closed loop clients ask as fast as
/// they are served, so some resource is at its limit: a server, the machine, or such a thread. With
/// a schedule, a full thread starts sections late, which is judged as lag.
void certify_threads(const RunEvidence& evidence, results::Generator& generator,
                     const Invalid& invalid) {
  if (!evidence.busiest_thread_seconds || evidence.wall_seconds <= 0) return;
  generator.busiest_thread_share = *evidence.busiest_thread_seconds / evidence.wall_seconds;
  // A lock in this process uses its clients' threads by design. On a full machine, servers get no
  // more, however the rest is divided.
  if (!evidence.has_store || !evidence.closed_loop ||
      *generator.busiest_thread_share <= kFullThreadShare ||
      generator.machine_cpu_share.value_or(0) >= kFullMachineShare) {
    return;
  }
  const double thread = 100 * *generator.busiest_thread_share;
  if (!evidence.each_server_cpu_seconds) {
    return invalid(
        fmt::format("a thread of the load generator was busy {:.0f} % of the time, and the servers "
                    "do not report their CPU: more --threads may reach more",
                    thread));
  }
  const double server = *evidence.each_server_cpu_seconds / evidence.wall_seconds;
  if (server >= kBusyServerShare) return;
  invalid(
      fmt::format("a thread of the load generator was busy {:.0f} % of the time, and a server only "
                  "{:.0f} %: the generator was the bottleneck (see --threads)",
                  thread, 100 * server));
}

}  // namespace

MachineCpu operator-(const MachineCpu& later, const MachineCpu& earlier) {
  return {.total = later.total - earlier.total,
          .busy = later.busy - earlier.busy,
          .programs = later.programs - earlier.programs,
          .stolen = later.stolen - earlier.stolen};
}

std::optional<MachineCpu> parse_machine_cpu(std::string_view stat, double ticks_per_second) {
  // proc(5): "cpu user nice system idle iowait irq softirq steal guest guest_nice", of which the
  // last two are a part of the first two.
  std::istringstream line{std::string(stat.substr(0, stat.find('\n')))};
  std::string name;
  std::array<double, 8> ticks{};
  line >> name;
  for (double& number : ticks) line >> number;
  if (!line || name != "cpu" || ticks_per_second <= 0) return std::nullopt;
  const auto [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
  const double programs = user + nice + system, busy = programs + irq + softirq;
  return MachineCpu{.total = (busy + idle + iowait + steal) / ticks_per_second,
                    .busy = busy / ticks_per_second,
                    .programs = programs / ticks_per_second,
                    .stolen = steal / ticks_per_second};
}

std::optional<double> parse_cpu_pressure(std::string_view pressure) {
  // "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", in microseconds; a line "full" may follow.
  std::istringstream line{std::string(pressure.substr(0, pressure.find('\n')))};
  std::string word;
  line >> word;
  if (word != "some") return std::nullopt;
  while (line >> word) {
    if (!word.starts_with("total=")) continue;
    std::istringstream number(word.substr(word.find('=') + 1));
    double microseconds = 0;
    if (number >> microseconds) return microseconds * 1e-6;
  }
  return std::nullopt;
}

std::optional<double> read_throttled_seconds(const std::filesystem::path& root) {
  // cgroups(7): "0::/the/group", perhaps among lines of version 1.
  constexpr std::string_view kVersion2 = "0::/";
  std::istringstream lines(text_of(root / "proc/self/cgroup"));
  std::string line;
  while (std::getline(lines, line) && !line.starts_with(kVersion2)) {
  }
  if (!line.starts_with(kVersion2)) return std::nullopt;
  line.erase(0, kVersion2.size());
  const std::filesystem::path top = root / "sys/fs/cgroup";
  std::optional<double> all;
  // Each group counts the time for which its own limit held threads up.
  for (auto group = std::filesystem::path(line).relative_path();; group = group.parent_path()) {
    const auto throttled = parse_throttled(text_of(top / group / "cpu.stat"));
    if (throttled) all = all.value_or(0) + *throttled;
    if (group.empty()) return all;
  }
}

MachineReading read_machine() {
  return {
      .cpu = parse_machine_cpu(text_of("/proc/stat"), static_cast<double>(::sysconf(_SC_CLK_TCK))),
      .pressure_seconds = parse_cpu_pressure(text_of("/proc/pressure/cpu")),
      .throttled_seconds = read_throttled_seconds("/")};
}

results::Generator certify(const RunEvidence& evidence) {
  results::Generator generator;
  generator.cpu_seconds = evidence.cpu_seconds;
  if (evidence.wall_seconds > 0) {
    generator.cpu_share = evidence.cpu_seconds / (evidence.wall_seconds * evidence.cores);
  }
  const Invalid invalid = [&](std::string reason) {
    generator.valid = false;
    generator.reasons.push_back(std::move(reason));
  };

  // A lock in this process uses the generator's CPU by design.
  if (evidence.has_store && generator.cpu_share > kHighestCpuShare) {
    invalid(fmt::format("the load generator used {:.0f} % of the CPU", 100 * generator.cpu_share));
  }
  certify_machine(evidence, generator, invalid);
  certify_threads(evidence, generator, invalid);
  if (evidence.has_store && is_too_late(evidence.turn_lag, evidence)) {
    invalid(fmt::format(
        "clients waited for their turn after an answer, p99 {} µs, with acquire p99 {} µs: fewer "
        "clients, or more --threads",
        p99_us(evidence.turn_lag), p99_us(evidence.acquire)));
  }
  if (evidence.acquire.count() > 0 &&
      distorts(evidence.echo, evidence.acquire, 0.5, {}, kHighestEchoShare)) {
    const auto us = [](const HistogramSnapshot& of) {
      return std::chrono::round<std::chrono::microseconds>(of.percentile(0.5)).count();
    };
    invalid(
        fmt::format("an empty request to the client program took {} µs, with acquire p50 {} µs: "
                    "the program was the "
                    "bottleneck (see --clients-per-process)",
                    us(evidence.echo), us(evidence.acquire)));
  }
  if (renews_too_late(evidence)) {
    invalid(
        fmt::format("leases were renewed up to {:.1f} ms late, with a TTL of {:.1f} ms: the "
                    "thread of the renewals was busy",
                    1e3 * seconds(evidence.renewal_slip.max), 1e3 * seconds(evidence.ttl)));
  }
  if (is_too_late(evidence.wake_lag, evidence)) {
    invalid(fmt::format("idle clients started late: p99 start delay {} µs, with acquire p99 {} µs",
                        p99_us(evidence.wake_lag), p99_us(evidence.acquire)));
  } else if (distorts(evidence.schedule_lag, evidence.scheduled_acquire, 0.99, kLagNoise,
                      kHighestLagShare)) {
    invalid(fmt::format(
        "{}: all clients were busy, so sections began late, p99 {:.1f} ms after the schedule",
        results::kNotTheLoadAskedFor, 1e-3 * static_cast<double>(p99_us(evidence.schedule_lag))));
  }
  if (evidence.overrun_seconds > kOverrunNoise + kHighestOverrunShare * evidence.wall_seconds) {
    invalid(fmt::format("the runner noticed the end {:.2f} s late: the machine was overloaded",
                        evidence.overrun_seconds));
  }
  if (evidence.overflowed_samples > 0) {
    invalid(
        fmt::format("{} samples were above the histograms' range", evidence.overflowed_samples));
  }
  if (std::abs(evidence.wall_clock_jump_seconds) > kClockJumpSeconds) {
    invalid(fmt::format("the clock jumped by {:.3f} s", evidence.wall_clock_jump_seconds));
  }
  if (evidence.suspended_seconds > kClockJumpSeconds) {
    invalid(fmt::format("the machine was suspended for {:.3f} s", evidence.suspended_seconds));
  }
  for (const std::string& server : evidence.restarted_servers) invalid(server);
  return generator;
}

}  // namespace lockbench::loadgen
