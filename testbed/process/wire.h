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
/// (SOCK_SEQPACKET): fields, each of which ends with NUL. On the supervisor's stdin:
///
///   log folder user argv...   starts a process; with it comes one end of a pair of sockets
///
/// That pair belongs to the process, so no message needs to say which one it is about:
///
///   ← problem pid             the answer to the start
///   → signo   ← problem       sends a signal, as signal_tree() does
///
/// An empty problem: it is done. The supervisor hangs up when the process has ended, and kills the
/// process when the testbed hangs up.
namespace wire {

/// Thread-safe. `file`: a descriptor that goes with it. False: the other side is gone, or the
/// message is longer than 64 KiB.
bool send(int socket, const std::vector<std::string>& fields, int file = -1);

/// Waits for the next message, which has a field at least. Nothing: the other side is gone. `file`
/// becomes the descriptor that came with it.
std::optional<std::vector<std::string>> receive(int socket, int* file = nullptr);

/// What comes first of `events` (as for poll) and the other side's hanging up; 0 if neither comes
/// in time. For any socket.
short await(int socket, short events, std::chrono::steady_clock::time_point deadline);

}  // namespace wire
}  // namespace lockbench::testbed
