#pragma once

#include <sys/types.h>

namespace lockbench::testbed {

/// Signals the group that `leader`, a child of ours that is not reaped yet, leads. SIGSTOP, SIGCONT
/// and SIGKILL also reach its descendants that have groups of their own, as PostgreSQL's have.
/// After SIGSTOP all of them stand still, each thread, unless the kernel takes unusually long.
/// False if the group cannot be signalled.
bool signal_tree(pid_t leader, int signo);

}  // namespace lockbench::testbed
