#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/servers/testbed.h"

namespace lockbench::testbed {

class ClockShim;
class Server;

/// What it takes to run one server. A kind of server fills it in.
struct ServerSpec {
  std::filesystem::path folder;                ///< from Testbed::make_server_folder
  std::string name;                            ///< in messages; empty: the program's file name
  std::vector<std::string> argv;               ///< argv[0] is the absolute path of the program
  std::vector<std::uint16_t> ports;            ///< the first is the one that clients use
  std::string user;                            ///< run as this user; empty: as the caller
  const ClockShim* clock = nullptr;            ///< that it must run by once it is ready
  int stop_signal = SIGTERM;                   ///< asks for an orderly end
  std::chrono::milliseconds stop_grace{5000};  ///< from that signal to SIGKILL
  std::chrono::milliseconds ready_within{10'000};
  /// Whether the server can be used; asked again and again until it says so or time is up. Must
  /// return within about a second.
  std::function<bool(const Server&)> ready;
};

/// One running server: a process with all its children under the testbed's supervisor. Thread-safe;
/// starting and stopping exclude each other. Every call is bounded: stops by stop_grace and a few
/// seconds, starts by ready_within and a few seconds.
class Server {
 public:
  /// Returns when the server is ready. If it ends instead, the error carries the end of its log.
  static tl::expected<std::unique_ptr<Server>, std::string> start(const Testbed& testbed,
                                                                  ServerSpec spec);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Stops the server and removes its folder.
  virtual ~Server();

  bool alive() const;  ///< the process exists; true for a frozen one
  pid_t pid() const;   ///< of the present process, or of the last one
  std::uint16_t port() const {
    return spec_.ports.empty() ? std::uint16_t{0} : spec_.ports.front();
  }
  const std::vector<std::uint16_t>& ports() const { return spec_.ports; }
  std::filesystem::path data_folder() const { return spec_.folder / "data"; }
  std::filesystem::path log_path() const { return spec_.folder / "log"; }
  /// What the present process has written so far, or the last 64 KiB of it.
  std::string log() const;

  /// SIGSTOP, SIGCONT and SIGKILL reach the whole tree of processes, others the server's own group.
  tl::expected<void, std::string> signal(int signo);
  tl::expected<void, std::string> freeze() { return signal(SIGSTOP); }
  tl::expected<void, std::string> thaw() { return signal(SIGCONT); }
  /// An orderly end, or SIGKILL after the grace; waits for it. Fine if the server has ended
  /// already.
  tl::expected<void, std::string> stop();
  /// SIGKILL; waits for the end. Fine if the server has ended already.
  tl::expected<void, std::string> kill_hard();
  /// Stops the server if it runs, and starts it again on the same ports with its data, or without.
  tl::expected<void, std::string> restart(bool keep_data);

 protected:
  Server(const Testbed& testbed, ServerSpec spec);
  /// Starts the process and awaits readiness; a server that does not become ready is killed.
  tl::expected<void, std::string> launch();

 private:
  using Result = tl::expected<void, std::string>;

  Result launch_locked();
  Result stop_locked();
  Result kill_locked();
  Result await_ready(Supervisor::Handle process);
  /// A library that is to be preloaded and cannot be is no more than a warning of the loader's.
  Result runs_by_clock(std::int64_t loads_before) const;
  Result clear_data() const;
  std::string failure(std::string_view what) const;

  const ServerSpec spec_;
  const std::shared_ptr<Supervisor> supervisor_;
  std::mutex lifecycle_;  // held while starting and stopping
  std::atomic<Supervisor::Handle> process_ = 0;
  std::atomic<std::uintmax_t> log_start_ = 0;  // where the present process's log begins
};

}  // namespace lockbench::testbed
