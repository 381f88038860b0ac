#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loadgen/record/histogram.h"

namespace lockbench::loadgen {

/// CPU time of all cores of this machine since it started, in seconds.
struct MachineCpu {
  double total = 0;     ///< of all kinds, idling included
  double busy = 0;      ///< in use by programs and interrupts
  double programs = 0;  ///< in use by programs alone
  double stolen = 0;    ///< wanted, but the host ran other virtual machines
};
MachineCpu operator-(const MachineCpu& later, const MachineCpu& earlier);

/// The kernel's figures for the whole machine, and for this process's limits; nothing if it has
/// none.
struct MachineReading {
  std::optional<MachineCpu> cpu;
  /// Time in which at least one thread waited for a core, since the machine started.
  std::optional<double> pressure_seconds;
  /// Time for which a CPU limit held threads up, added up over the cores.
  std::optional<double> throttled_seconds{};
};

/// Reads /proc and /sys. Takes some microseconds for each core.
MachineReading read_machine();

/// From the text of /proc/stat; nothing if it is of another form.
std::optional<MachineCpu> parse_machine_cpu(std::string_view stat, double ticks_per_second);
/// In seconds, from the text of /proc/pressure/cpu.
std::optional<double> parse_cpu_pressure(std::string_view pressure);
/// Of this process's control group (version 2: a container, a service) and its parents, in seconds,
/// by the files below `root`. Nothing if the kernel does not count it.
std::optional<double> read_throttled_seconds(const std::filesystem::path& root);

/// Evidence for a finished run's validity.
struct RunEvidence {
  double wall_seconds = 0;             ///< from the start of the load, by the monotonic clock
  double wall_clock_jump_seconds = 0;  ///< change of the time of day against it
  double suspended_seconds = 0;        ///< for which the machine was suspended
  double cpu_seconds = 0;              ///< of this process during the load
  /// CPU time of the busiest of the threads that clients share; nothing on virtual time.
  std::optional<double> busiest_thread_seconds;
  /// Of all private servers during the load; nothing if the lock or the counter is on servers of
  /// the user, whose CPU may be that of this machine.
  std::optional<double> private_cpu_seconds;
  /// The mean over the lock's servers; nothing if they do not report it.
  std::optional<double> each_server_cpu_seconds;
  bool closed_loop = true;
  MachineReading machine;  ///< during the load
  int cores = 1;
  bool has_store = true;       ///< false: the lock itself lives in this process
  double overrun_seconds = 0;  ///< how late the runner noticed the end of the load
  Duration stood_still{};      ///< the longest time for which this process did not run
  /// Open loop: actual start after the intended one, up to the first fault.
  HistogramSnapshot schedule_lag, scheduled_acquire;
  HistogramSnapshot wake_lag;  ///< the same for clients that were idle and had to wake up
  HistogramSnapshot turn_lag;  ///< of clients behind others on their thread, after an answer
  /// How late renewals were sent, and how long the store took to answer them; empty after a fault,
  /// or a renewal that failed.
  HistogramSnapshot renewal_slip, renewal_duration;
  Duration ttl{};  ///< of the renewed leases
  HistogramSnapshot acquire;
  HistogramSnapshot echo;  ///< of a client program; empty without one
  std::uint64_t overflowed_samples = 0;
  std::vector<std::string> restarted_servers;
};

/// Decides whether the figures show the lock, or rather the generator and its machine. One line per
/// reason against the figures.
results::Generator certify(const RunEvidence& evidence);

}  // namespace lockbench::loadgen
