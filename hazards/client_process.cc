#include "hazards/client_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

namespace lockbench::hazards {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kExitTimeout{10};

/// A socket pair, not a pipe: writing to a dead reader is then an error instead of a signal.
std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Failure(fmt::format("cannot make a socket pair for a client: {}", std::strerror(errno)));
  }
  return ends;
}

/// In its own process group, so that Ctrl-C in a terminal does not reach it.
int spawn(const std::string& program, int pipe, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, pipe, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, pipe, STDOUT_FILENO);
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
  const auto [ours, its] = make_pipe();
  const int error = spawn(program.string(), its, pid_);
  close(its);
  pipe_ = ours;
  if (error == 0) return;
  close(pipe_);
  throw Failure(fmt::format("cannot start {}: {}", program.string(), std::strerror(error)));
}

ClientProcess::~ClientProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(pipe_);
}

void ClientProcess::send(const Json& request) {
  const std::string line = request.dump() + "\n";
  if (::send(pipe_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) {
    throw Failure(fmt::format("cannot send to a client process: {}", std::strerror(errno)));
  }
}

std::optional<Json> ClientProcess::receive(Duration within) {
  const auto deadline = Clock::now() + within;
  std::size_t newline = 0;
  while ((newline = buffered_.find('\n')) == std::string::npos) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd readable{.fd = pipe_, .events = POLLIN, .revents = 0};
    const int ready = poll(&readable, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    std::array<char, 4096> bytes{};
    const ssize_t count = read(pipe_, bytes.data(), bytes.size());
    if (count <= 0) return std::nullopt;
    buffered_.append(bytes.data(), static_cast<std::size_t>(count));
  }
  Json message = Json::parse(buffered_.substr(0, newline), nullptr, false);
  buffered_.erase(0, newline + 1);
  if (!message.is_object()) throw Failure("a client process sent something that is not an answer");
  return message;
}

bool ClientProcess::await_change(int options, Duration within) {
  const auto deadline = Clock::now() + within;
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

void ClientProcess::await_death(Duration within) {
  if (!await_change(0, within)) throw Failure("a client process did not die in time");
}

void ClientProcess::await_stop(Duration within) {
  if (!await_change(WUNTRACED, within)) throw Failure("a client process did not stop in time");
}

void ClientProcess::signal(int number) {
  if (pid_ <= 0 || ::kill(pid_, number) != 0)
    throw Failure("a client process has died unexpectedly");
}

void ClientProcess::kill() {
  signal(SIGKILL);
  await_death(kExitTimeout);
}

void ClientProcess::stop() {
  signal(SIGSTOP);
  await_stop(kExitTimeout);
}

void ClientProcess::resume() { signal(SIGCONT); }

}  // namespace lockbench::hazards
