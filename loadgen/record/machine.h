#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace lockbench::loadgen {

/// CPU time of all cores of this machine since it started, in seconds.
struct MachineCpu {
  double total = 0;     ///< of all kinds, idling included
  double busy = 0;      ///< in use by programs and interrupts
  double programs = 0;  ///< in use by programs alone
  double stolen = 0;    ///< wanted, but the host ran other virtual machines
};
MachineCpu operator-(const MachineCpu& later, const MachineCpu& earlier);

/// What the kernel says of the machine as a whole, and of this process's limits. Nothing where it
/// does not.
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
/// Of this process's control group (version 2: a container, a service) and of those around it, in
/// seconds, by the files below `root`. Nothing where the kernel counts none.
std::optional<double> read_throttled_seconds(const std::filesystem::path& root);

}  // namespace lockbench::loadgen
