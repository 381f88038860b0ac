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
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/servers/testbed.h"

namespace lockbench::testbed {

class ClockShim;
class Server;
struct TlsFiles;

using StartedServer = tl::expected<std::unique_ptr<Server>, std::string>;
using StartedCluster = tl::expected<std::vector<std::unique_ptr<Server>>, std::string>;

/// The URL of servers on loopback: the text before and after HOST:PORT.
struct UrlForm {
  std::string before{}, after{};

  /// For one server, or for all members of a cluster: "http://127.0.0.1:1,127.0.0.1:2".
  std::string on(const std::vector<std::uint16_t>& ports) const;
};

/// How to run one server.
struct ServerSpec {
  /// For a server in a new folder named after it. Throws Failure.
  static ServerSpec in_new_folder(Testbed& testbed, std::string_view name,
                                  std::vector<std::uint16_t> ports = {});
  /// Sets the start and end of clients' URLs. `plain` and `secured` are the schemes; `files` is
  /// null without TLS.
  void speak(std::string_view plain, std::string_view secured, const std::string& login,
             const TlsFiles* files);

  /// Adds variables to its environment: "NAME=value".
  void set(std::vector<std::string> variables);

  std::filesystem::path folder;      ///< from Testbed::make_server_folder
  std::string name;                  ///< for messages; empty: the program's file name
  std::vector<std::string> argv;     ///< argv[0] is the absolute path of the program
  std::vector<std::uint16_t> ports;  ///< the first is for clients
  UrlForm url;
  const TlsFiles* tls = nullptr;     ///< null without TLS
  const ClockShim* clock = nullptr;  ///< null: the machine's
  std::chrono::milliseconds ready_within{120'000};
  /// Whether the server is ready; called until it returns true or the time is up. Must return
  /// within about a second.
  std::function<bool(const Server&)> ready;
  /// Whether it leads its cluster; null for a server without one.
  std::function<bool(const Server&)> leads = nullptr;
};

/// One running server: a process with all its children under the testbed's supervisor, run by the
/// testbed's account. Thread-safe: it is started and killed by one thread at a time. Killing it
/// takes at most half a minute, and returns when all its processes are gone; starting it takes at
/// most ready_within and as long.
class Server final {
 public:
  /// Returns when the server is ready. If it ends instead, the error carries the end of its log.
  static StartedServer start(const Testbed& testbed, ServerSpec spec);

  /// Kills the server and removes its folder.
  ~Server();

  bool alive() const;  ///< the process exists; true for a frozen one
  pid_t pid() const;   ///< of the present process, or of the last one
  std::uint16_t port() const {
    return spec_.ports.empty() ? std::uint16_t{0} : spec_.ports.front();
  }
  const std::vector<std::uint16_t>& ports() const { return spec_.ports; }
  /// With the secret: for clients, not for messages or arguments of a program.
  std::string url() const { return spec_.url.on({port()}); }
  /// For people: "127.0.0.1:6379".
  std::string address() const { return UrlForm{}.on({port()}); }
  /// The password in url().
  const std::string& secret() const { return secret_; }
  const UrlForm& url_form() const { return spec_.url; }
  /// For requests to it; null without TLS.
  const TlsFiles* tls() const { return spec_.tls; }
  /// Whether it leads its cluster; false if it does not answer.
  bool leads() const { return alive() && spec_.leads && spec_.leads(*this); }
  std::filesystem::path data_folder() const { return spec_.folder / "data"; }
  std::filesystem::path log_path() const { return spec_.folder / "log"; }
  /// The present process's log so far, at most the last 64 KiB.
  std::string log() const;

  /// SIGSTOP, SIGCONT and SIGKILL are sent to the whole process tree, others to the server's
  /// process group.
  tl::expected<void, std::string> signal(int signo);
  tl::expected<void, std::string> freeze() { return signal(SIGSTOP); }
  tl::expected<void, std::string> thaw() { return signal(SIGCONT); }
  /// Sends SIGKILL and waits for the end. No error if the server has ended already.
  tl::expected<void, std::string> kill_hard();
  /// Kills the server if it runs, and starts it again on the same ports, with or without its data.
  tl::expected<void, std::string> restart(bool keep_data);

 private:
  using Result = tl::expected<void, std::string>;

  Server(const Testbed& testbed, ServerSpec spec)
      : spec_(std::move(spec)),
        user_(testbed.account().name),
        secret_(testbed.secret()),
        supervisor_(testbed.supervisor()) {}
  /// The present process, or the last one; null before the first.
  std::shared_ptr<Process> process() const;
  /// Starts the process and awaits readiness; a server that does not become ready is killed.
  Result launch_locked();
  Result kill_locked();
  Result await_ready(const Process& process);
  Result clear_data() const;
  std::string failure(std::string_view what) const;

  const ServerSpec spec_;
  const std::string user_;  ///< of this machine; empty: the caller
  const std::string secret_;
  const std::shared_ptr<Supervisor> supervisor_;
  std::mutex lifecycle_;  // locked while starting and stopping
  mutable std::mutex replacing_;
  std::shared_ptr<Process> process_;           // under replacing_
  std::atomic<std::uintmax_t> log_start_ = 0;  // where the present process's log begins
};

/// The URL of a cluster.
std::string joint_url(const std::vector<std::unique_ptr<Server>>& servers);

}  // namespace lockbench::testbed
