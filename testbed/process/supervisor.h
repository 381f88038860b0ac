#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>

#include "testbed/process/wire.h"

namespace lockbench::testbed {

/// Two ends of a connection on which each write is one read at the other end.
tl::expected<std::array<int, 2>, std::string> make_pair_of_sockets();

/// Starts a program with one argument and default signal handling, in its own session, so that
/// Ctrl-C never reaches it. Its stdin is the socket; its output is appended to the log, as ours may
/// be a pipe whose reader waits for its end. Without a log, its stdout is the socket, too.
tl::expected<pid_t, std::string> spawn(const std::filesystem::path& program, std::string argument,
                                       int socket, const std::string& log = {});

/// A process started by the supervisor. Thread-safe. It counts as ended once it is reaped and its
/// group killed, or when the supervisor has ended.
class Process {
 public:
  using Clock = std::chrono::steady_clock;

  /// The supervisor kills it if it still runs.
  ~Process();

  pid_t pid() const { return pid_; }  ///< also of an ended process
  bool running() const { return !wait_for_exit(Clock::now()); }
  /// Whether it has ended by the deadline.
  bool wait_for_exit(Clock::time_point deadline) const;
  /// Signals the process group; SIGSTOP, SIGCONT and SIGKILL also descendants in other groups.
  /// Fails if the process has ended. The process is killed if the supervisor does not answer in
  /// time.
  tl::expected<void, std::string> signal(int signo);

 private:
  friend class Supervisor;
  explicit Process(int socket) : socket_(socket) {}
  /// The last field of the answer to the latest request. `no_answer`: the error if none comes.
  tl::expected<std::string, std::string> answer(const char* no_answer);

  const int socket_;
  pid_t pid_ = 0;
  std::mutex asking_;  // held from a request to its answer
};

/// The client of a lockbench-supervisor process, which starts servers and kills them when this
/// process ends, even if it is killed. Thread-safe. Requests take at most kAnswerWithin. After
/// close(), or when the supervisor has died, they fail and all processes count as ended.
class Supervisor {
 public:
  static constexpr std::chrono::seconds kAnswerWithin{10};

  /// Starts `program`, which removes `folder` (an absolute path) when it ends.
  static tl::expected<std::shared_ptr<Supervisor>, std::string> spawn(
      const std::filesystem::path& program, const std::filesystem::path& folder);

  ~Supervisor();

  tl::expected<std::shared_ptr<Process>, std::string> launch(const LaunchSpec& spec);

  /// Kills all processes and waits for their ends, at most about 10 s. Idempotent.
  void close() noexcept;
  pid_t own_pid() const { return pid_; }

 private:
  Supervisor(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  const pid_t pid_;
  const int socket_;
  std::once_flag closed_;
};

}  // namespace lockbench::testbed
