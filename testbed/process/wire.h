#pragma once

#include <optional>
#include <string>
#include <vector>

/// The protocol between a testbed and its supervisor, over a socket that keeps messages apart
/// (SOCK_SEQPACKET): fields, each of which ends with NUL. The testbed numbers its requests with a
/// rising `id`. The id of a start also identifies the process, as pids are reused.
///
///   start id log folder user stop_signal argv...   → started id pid   | failed id reason
///   signal id process signo                        → ok id            | failed id reason
///   stop id process grace_ms                       → ok id            | failed id reason
///                              at any time:          exited process
///
/// `stop` sends the process's stop signal, and SIGKILL after the grace; `exited` reports the end.
/// Signals go to the process group.
namespace lockbench::testbed::wire {

/// Thread-safe. False: the other side is gone, or the message is longer than 64 KiB.
bool send(int socket, const std::vector<std::string>& fields);

/// Waits for the next message. Nothing: the other side is gone, or sent something else.
std::optional<std::vector<std::string>> receive(int socket);

}  // namespace lockbench::testbed::wire
