#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "deployment/failure.h"
#include "hazards/messages.h"

namespace lockbench::hazards {

using deployment::Failure;
using deployment::need;

/// A client in its own process (`PROGRAM client`), controlled by messages over a socket, which can
/// really be killed and stopped. Not thread-safe; the process ends with the thread that started it.
/// Throws Failure if the process does not do what was asked.
class ClientProcess {
 public:
  explicit ClientProcess(const std::filesystem::path& program);
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;
  /// Kills it if it still runs.
  ~ClientProcess();

  template <class Message>
  void send(const Message& message) {
    if (!hazards::send(socket_, message)) throw Failure("a client process has ended");
  }
  /// The next message. Empty if none arrives in time or the process has died.
  std::optional<Answer> receive(Duration within);

  void kill();    ///< SIGKILL; returns when it is dead
  void stop();    ///< SIGSTOP; returns when it is stopped
  void resume();  ///< SIGCONT
  /// Waits for the process to die or stop itself at a fault that was armed.
  void await_death(Duration within);
  void await_stop(Duration within);

 private:
  /// Whether waitpid reports the change in time. `options`: WUNTRACED for a stop, 0 for the end.
  bool await_change(int options, Duration within);
  void signal(int number);

  pid_t pid_ = -1;
  int socket_ = -1;  ///< this side's end
};

/// Main loop of a client process: carries out the requests that come by the socket (see
/// messages.h), until the other side is gone. Returns the exit code.
int serve_client(int socket);

}  // namespace lockbench::hazards
