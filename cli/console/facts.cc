#include "cli/console/facts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "version.h"

namespace lockbench::cli {
namespace {

std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t value = line.find(": ");
    if (value != std::string::npos) return line.substr(value + 2);
  }
  return "unknown";
}

std::string kernel() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

std::uint64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages < 0 || page_size < 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_size);
}

std::tm utc(WallTime time) {
  return fmt::gmtime(std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(time)));
}

}  // namespace

results::Build build_facts() { return {LOCKBENCH_VERSION, LOCKBENCH_COMMIT, LOCKBENCH_BUILD_TYPE}; }

std::string build_line(const results::Build& build) {
  return fmt::format("{} ({}, {})", build.version, build.commit, build.build_type);
}

results::Environment machine_facts() {
  return {.cpu = cpu_model(),
          .cores = static_cast<int>(std::thread::hardware_concurrency()),
          .kernel = kernel(),
          .memory_bytes = memory_bytes()};
}

std::string clock_source() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return std::getline(file, source) ? source : "unknown";
}

std::string rfc3339(WallTime time) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc(time)); }

std::string run_id(WallTime time, std::uint32_t random) {
  return fmt::format("{:%Y%m%dT%H%M%SZ}-{:06x}", utc(time), random & 0xffffffU);
}

}  // namespace lockbench::cli
