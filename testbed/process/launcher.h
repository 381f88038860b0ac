#pragma once

#include <sys/types.h>

#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace lockbench::testbed {

/// How the supervisor starts one process.
struct LaunchSpec {
  std::vector<std::string> argv;  ///< argv[0] is the absolute path of the program
  std::string log;                ///< stdout and stderr are appended to this file
  std::string folder;             ///< working directory
  std::string user;               ///< run as this user; empty: as the caller
  int stop_signal = 15;           ///< for an orderly stop: SIGTERM, for PostgreSQL SIGINT
};

/// Starts a process in a group of its own, with default signal handling, an empty signal mask, no
/// inherited files, and PR_SET_PDEATHSIG, so that it dies with the caller. Returns once the
/// program runs; the error says which step failed. For a caller with one thread.
tl::expected<pid_t, std::string> launch(const LaunchSpec& spec);

}  // namespace lockbench::testbed
