#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/process/launcher.h"

namespace lockbench::testbed {

/// The client of a lockbench-supervisor process, which starts servers and stops them when this
/// process ends, even if it is killed. Thread-safe. Every call takes at most kAnswerWithin unless
/// said otherwise. After close(), or when the supervisor has died, calls fail and all processes
/// count as ended.
class Supervisor {
 public:
  /// Identifies one started process; never reused, unlike a pid.
  using Handle = std::uint64_t;
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kAnswerWithin{10};

  /// Starts `program`, which removes `folder` (an absolute path) when it ends.
  static tl::expected<std::shared_ptr<Supervisor>, std::string> spawn(
      const std::filesystem::path& program, const std::filesystem::path& folder);

  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  tl::expected<Handle, std::string> launch(const LaunchSpec& spec);
  /// Signals the process group; SIGSTOP, SIGCONT and SIGKILL also descendants in other groups.
  /// Fails if the process has ended.
  tl::expected<void, std::string> signal(Handle process, int signo);
  /// Sends the stop signal, and SIGKILL after `grace`. Does not wait.
  tl::expected<void, std::string> stop(Handle process, std::chrono::milliseconds grace);
  /// True if the process has ended, or if the handle is unknown.
  bool wait_for_exit(Handle process, Clock::time_point deadline);
  bool running(Handle process) const;
  pid_t pid(Handle process) const;  ///< also of an ended process; 0 if the handle is unknown
  void forget(Handle process);      ///< forgets an ended process

  /// Stops all processes and waits for that, for at most about 10 s. Idempotent.
  void close() noexcept;
  pid_t own_pid() const { return pid_; }

 private:
  struct Process {
    pid_t pid = 0;
    bool running = true;
  };
  using Answer = tl::expected<void, std::string>;

  Supervisor(pid_t pid, int socket);

  std::uint64_t new_request();
  Answer ask(std::uint64_t id, const std::vector<std::string>& fields);
  void listen();
  void hear(const std::vector<std::string>& fields);
  void mark_gone();

  const pid_t pid_;
  const int socket_;
  std::mutex close_mutex_;
  bool closed_ = false;  // under close_mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_:
  std::uint64_t last_id_ = 0;
  std::set<std::uint64_t> asked_;
  std::map<std::uint64_t, Answer> answers_;
  std::map<Handle, Process> processes_;
  bool gone_ = false;

  std::thread listener_;
};

}  // namespace lockbench::testbed
