#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace lockbench::testbed {

/// How the supervisor starts one process.
struct LaunchSpec {
  std::vector<std::string> argv;  ///< argv[0] is the absolute path of the program
  std::string log;                ///< stdout and stderr are appended to this file
  std::string folder;             ///< working directory
  std::string user;               ///< run as this user; empty: as the caller
};

/// The protocol between a testbed and its supervisor, over sockets that keep messages apart
/// (SOCK_SEQPACKET): fields that end with NUL. On the supervisor's stdin:
///
///   log folder user argv...   starts a process; carries one end of a pair of sockets
///
/// That pair belongs to the process, so its messages need not name it:
///
///   ← problem pid             the answer to the start
///   → signo   ← problem       sends a signal, as signal_tree() does
///
/// An empty problem means success. The supervisor hangs up when the process has ended, and kills
/// the process when the testbed hangs up.
namespace wire {

/// Thread-safe. `file`: a descriptor to send along. False if the other side is gone, or the message
/// is longer than 64 KiB.
bool send(int socket, const std::vector<std::string>& fields, int file = -1);

/// Waits for the next message, which has at least one field; nothing if the other side is gone.
/// Sets `file` to the descriptor sent along.
std::optional<std::vector<std::string>> receive(int socket, int* file = nullptr);

/// Waits for `events` (as for poll) or the other side's hang-up and returns the first; 0 if neither
/// comes in time. For any socket.
short await(int socket, short events, std::chrono::steady_clock::time_point deadline);

}  // namespace wire
}  // namespace lockbench::testbed
