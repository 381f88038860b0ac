#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "strategies/duration.h"
#include "strategies/errors.h"

namespace lockbench::hazards {

/// A play that cannot go on: a server or a client process did not do what the stage directions
/// need. Says nothing about the strategy.
class StageFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a play cannot go on without: throws StageFailure where it is missing.
template <class T, class E>
T need(tl::expected<T, E> result) {
  if constexpr (std::is_same_v<E, StoreError>) {
    if (!result) throw StageFailure(result.error().message);
  } else {
    if (!result) throw StageFailure(result.error());
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// A client in a process of its own (`PROGRAM client`), which is spoken to in lines of JSON over
/// pipes and can be killed and stopped for real. For one thread, with whose end the process ends,
/// stopped or not. Throws StageFailure where the process does not do its part.
class ClientProcess {
 public:
  explicit ClientProcess(const std::filesystem::path& program);
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;
  /// Kills it if it still runs.
  ~ClientProcess();

  void send(const nlohmann::json& request);
  /// The next line that it says. Nothing if none comes in time, or when it has died.
  std::optional<nlohmann::json> receive(Duration within);

  void kill();    ///< SIGKILL; returns when it is dead
  void stop();    ///< SIGSTOP; returns when it stands still
  void resume();  ///< SIGCONT
  /// By its own hand, at a fault that was armed.
  void await_death(Duration within);
  void await_stop(Duration within);

 private:
  /// Whether the kernel reports that change of it in time: WUNTRACED, or 0 for its end.
  bool await_change(int options, Duration within);
  void signal(int number);

  pid_t pid_ = -1;
  int pipe_ = -1;  ///< our end
  std::string buffered_;
};

}  // namespace lockbench::hazards
