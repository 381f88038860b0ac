#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <thread>

#include "hazards/play.h"

namespace lockbench::hazards {
namespace {

using Clock = std::chrono::steady_clock;

/// Each write is one read at the other end.
std::array<int, 2> make_sockets() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Failure(fmt::format("cannot make a socket pair for a client: {}", std::strerror(errno)));
  }
  return ends;
}

/// In its own process group, so that Ctrl-C in a terminal does not reach it.
int spawn(const std::string& program, int socket, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = program, argument = "client";
  std::array<char*, 3> argv{name.data(), argument.data(), nullptr};
  const int error = posix_spawn(&pid, name.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

ClientProcess::ClientProcess(const std::filesystem::path& program) {
  const auto [ours, its] = make_sockets();
  const int error = spawn(program.string(), its, pid_);
  close(its);
  socket_ = ours;
  if (error == 0) return;
  close(socket_);
  throw Failure(fmt::format("cannot start {}: {}", program.string(), std::strerror(error)));
}

ClientProcess::~ClientProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(socket_);
}

std::optional<Answer> ClientProcess::receive(Duration within) {
  const auto deadline = Clock::now() + within;
  pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    ready = poll(&readable, 1, static_cast<int>(std::max<long>(left.count(), 0)));
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return std::nullopt;
  try {
    return hazards::receive<Answer>(socket_);
  } catch (const std::exception& error) {
    throw Failure(fmt::format("a client process sent no answer: {}", error.what()));
  }
}

bool ClientProcess::await_change(int options) {
  constexpr std::chrono::seconds kWithin{10};
  const auto deadline = Clock::now() + kWithin;
  while (true) {
    int status = 0;
    const pid_t changed = waitpid(pid_, &status, options | WNOHANG);
    if (changed == pid_) {
      const bool ended = !WIFSTOPPED(status);
      if (ended) pid_ = -1;
      return ended == (options == 0);
    }
    if (changed < 0 || Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void ClientProcess::await_death() {
  if (!await_change(0)) throw Failure("a client process did not die in time");
}

void ClientProcess::await_stop() {
  if (!await_change(WUNTRACED)) throw Failure("a client process did not stop in time");
}

void ClientProcess::signal(int number) {
  if (pid_ <= 0 || ::kill(pid_, number) != 0)
    throw Failure("a client process has died unexpectedly");
}

}  // namespace lockbench::hazards
