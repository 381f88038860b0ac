#include "testbed/process/supervisor.h"

#include <fcntl.h>
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
#include <vector>

namespace lockbench::testbed {
namespace {

using Clock = Process::Clock;

constexpr const char* kSupervisorEnded = "the testbed's supervisor has ended";

}  // namespace

tl::expected<std::array<int, 2>, std::string> make_pair_of_sockets() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0) return ends;
  return tl::unexpected(fmt::format("socketpair: {}", std::strerror(errno)));
}

tl::expected<pid_t, std::string> spawn(const std::filesystem::path& program, std::string argument,
                                       int socket, const std::string& log) {
  std::string name = program.string();
  std::array<char*, 3> argv{name.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
  if (log.empty()) {
    posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, name.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return pid;
  return tl::unexpected(fmt::format("cannot start {}: {}", name, std::strerror(error)));
}

Process::~Process() { close(socket_); }

bool Process::wait_for_exit(Clock::time_point deadline) const {
  return (wire::await(socket_, 0, deadline) & POLLHUP) != 0;
}

tl::expected<std::string, std::string> Process::answer(const char* no_answer) {
  if (wire::await(socket_, POLLIN, Clock::now() + Supervisor::kAnswerWithin) == 0) {
    // A late answer would pass for the answer to the next request.
    shutdown(socket_, SHUT_RDWR);
    return tl::unexpected<std::string>("the testbed's supervisor does not answer");
  }
  const auto fields = wire::receive(socket_);
  if (!fields) return tl::unexpected<std::string>(no_answer);
  if (!fields->front().empty()) return tl::unexpected(fields->front());
  return fields->back();
}

tl::expected<void, std::string> Process::signal(int signo) {
  constexpr const char* kEnded = "the process has ended";
  const std::lock_guard lock(asking_);
  if (!wire::send(socket_, {std::to_string(signo)})) return tl::unexpected<std::string>(kEnded);
  return answer(kEnded).map([](const std::string& /*empty*/) {});
}

tl::expected<std::shared_ptr<Supervisor>, std::string> Supervisor::spawn(
    const std::filesystem::path& program, const std::filesystem::path& folder) {
  const auto ends = make_pair_of_sockets();
  if (!ends) return tl::unexpected(ends.error());
  const auto pid =
      testbed::spawn(program, folder.string(), ends->back(), (folder / "supervisor.log").string());
  ::close(ends->back());
  if (pid) return std::shared_ptr<Supervisor>(new Supervisor(*pid, ends->front()));
  ::close(ends->front());
  return tl::unexpected(pid.error());
}

Supervisor::~Supervisor() {
  close();
  ::close(socket_);
}

tl::expected<std::shared_ptr<Process>, std::string> Supervisor::launch(const LaunchSpec& spec) {
  const auto ends = make_pair_of_sockets();
  if (!ends) return tl::unexpected(ends.error());
  std::vector<std::string> fields{spec.log, spec.folder, spec.user};
  fields.insert(fields.end(), spec.argv.begin(), spec.argv.end());
  const bool sent = wire::send(socket_, fields, ends->back());
  ::close(ends->back());
  std::shared_ptr<Process> process(new Process(ends->front()));
  if (!sent) return tl::unexpected<std::string>(kSupervisorEnded);
  return process->answer(kSupervisorEnded).map([&](const std::string& pid) {
    process->pid_ = std::stoi(pid);
    return process;
  });
}

void Supervisor::close() noexcept {
  std::call_once(closed_, [this] {
    constexpr std::chrono::seconds kCloseWithin{8};  // more than the supervisor's own bound
    shutdown(socket_, SHUT_WR);
    if (wire::await(socket_, 0, Clock::now() + kCloseWithin) == 0) kill(pid_, SIGKILL);
    (void)TEMP_FAILURE_RETRY(waitpid(pid_, nullptr, 0));
  });
}

}  // namespace lockbench::testbed
