#pragma once

#include <sys/types.h>

namespace lockbench::testbed {

/// Signals the process group of `leader`, a child that is not reaped yet. SIGSTOP, SIGCONT and
/// SIGKILL are also sent to descendants in other groups, such as PostgreSQL's. After SIGSTOP all
/// their threads have stopped, unless the kernel takes unusually long. False if the group cannot be
/// signalled.
bool signal_tree(pid_t leader, int signo);

}  // namespace lockbench::testbed
