#include "loadgen/record/machine.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>

namespace lockbench::loadgen {
namespace {

/// Empty if there is no such file, or no permission to read it: getline does not throw then, as a
/// stream's buffer does.
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

}  // namespace lockbench::loadgen
