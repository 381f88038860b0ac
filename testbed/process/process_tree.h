#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

namespace lockbench::testbed {

/// Signals the process group of `leader`, a child that is not reaped yet. SIGSTOP, SIGCONT and
/// SIGKILL are also sent to descendants in other groups, such as PostgreSQL's. After SIGSTOP,
/// returns when all threads have stopped, unless the kernel takes unusually long. Returns these
/// descendants; nothing if the group cannot be signalled.
std::optional<std::set<pid_t>> signal_tree(pid_t leader, int signo);

/// CPU time, user and system, used so far by `leader` and its descendants, including reaped ones.
/// In steps of 10 ms for each process. Nothing if `leader` has ended.
std::optional<double> cpu_seconds_of_tree(pid_t leader);

/// Of one process.
struct ProcessCpu {
  double own_seconds = 0;
  double children_seconds = 0;  ///< of its children that it has waited for
};
/// From the text of /proc/PID/stat; nothing if it is of another form.
std::optional<ProcessCpu> parse_process_cpu(std::string_view stat, double ticks_per_second);

/// Removes a file or folder of ended servers, and the shared memory of each PostgreSQL killed
/// there, which would otherwise stay until the machine's restart.
void remove_remains(const std::filesystem::path& path, std::error_code& error);

}  // namespace lockbench::testbed
