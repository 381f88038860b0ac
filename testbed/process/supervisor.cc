#include "testbed/process/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "testbed/process/wire.h"

namespace lockbench::testbed {
namespace {

constexpr std::chrono::seconds kCloseWithin{8};  // more than the supervisor's own bound

std::uint64_t to_number(const std::string& text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// In a session of its own, so that Ctrl-C never reaches it. Its stderr goes to a log: ours may be
/// a pipe whose reader waits for it to be closed.
tl::expected<pid_t, std::string> spawn_process(const std::filesystem::path& program,
                                               const std::filesystem::path& folder, int socket) {
  const std::string log = folder / "supervisor.log";
  std::string name = program.string();
  std::string argument = folder.string();
  std::array<char*, 3> argv{name.data(), argument.data(), nullptr};
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, name.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    return tl::unexpected(fmt::format("cannot start {}: {}", name, std::strerror(error)));
  }
  return pid;
}

/// Blocks all signals: threads inherit the mask, so signals are delivered to other threads.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

tl::expected<std::shared_ptr<Supervisor>, std::string> Supervisor::spawn(
    const std::filesystem::path& program, const std::filesystem::path& folder) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return tl::unexpected(fmt::format("socketpair: {}", std::strerror(errno)));
  }
  const auto pid = spawn_process(program, folder, ends[1]);
  ::close(ends[1]);
  if (!pid) {
    ::close(ends[0]);
    return tl::unexpected(pid.error());
  }
  try {
    return std::shared_ptr<Supervisor>(new Supervisor(*pid, ends[0]));
  } catch (const std::system_error& error) {
    // Without its socket the supervisor ends.
    ::close(ends[0]);
    waitpid(*pid, nullptr, 0);
    return tl::unexpected(
        fmt::format("a thread cannot be started: {} (ulimit -u)", error.code().message()));
  }
}

Supervisor::Supervisor(pid_t pid, int socket) : pid_(pid), socket_(socket) {
  const AllSignalsBlocked blocked;
  listener_ = std::thread([this] {
    try {
      listen();
    } catch (const std::exception&) {
      // No memory for an answer: every request from now on fails.
    }
    mark_gone();
  });
}

Supervisor::~Supervisor() {
  close();
  ::close(socket_);
}

void Supervisor::close() noexcept {
  const std::lock_guard closing(close_mutex_);
  if (std::exchange(closed_, true)) return;
  shutdown(socket_, SHUT_WR);
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kCloseWithin, [this] { return gone_; })) kill(pid_, SIGKILL);
  }
  listener_.join();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::uint64_t Supervisor::new_request() {
  const std::lock_guard lock(mutex_);
  asked_.insert(++last_id_);
  return last_id_;
}

tl::expected<Supervisor::Handle, std::string> Supervisor::launch(const LaunchSpec& spec) {
  const std::uint64_t id = new_request();
  std::vector<std::string> fields{"start",   std::to_string(id),
                                  spec.log,  spec.folder,
                                  spec.user, std::to_string(spec.stop_signal)};
  fields.insert(fields.end(), spec.argv.begin(), spec.argv.end());
  return ask(id, fields).map([id] { return id; });
}

tl::expected<void, std::string> Supervisor::signal(Handle process, int signo) {
  const std::uint64_t id = new_request();
  return ask(id, {"signal", std::to_string(id), std::to_string(process), std::to_string(signo)});
}

tl::expected<void, std::string> Supervisor::stop(Handle process, std::chrono::milliseconds grace) {
  const std::uint64_t id = new_request();
  return ask(id,
             {"stop", std::to_string(id), std::to_string(process), std::to_string(grace.count())});
}

Supervisor::Answer Supervisor::ask(std::uint64_t id, const std::vector<std::string>& fields) {
  const bool sent = wire::send(socket_, fields);
  std::unique_lock lock(mutex_);
  const auto answered = [&] { return gone_ || answers_.contains(id); };
  const bool in_time = sent && changed_.wait_for(lock, kAnswerWithin, answered);
  asked_.erase(id);
  const auto found = answers_.find(id);
  if (found != answers_.end()) {
    Answer answer = std::move(found->second);
    answers_.erase(found);
    return answer;
  }
  return tl::unexpected<std::string>(sent && !in_time ? "the testbed's supervisor does not answer"
                                                      : "the testbed's supervisor has ended");
}

void Supervisor::listen() {
  while (const auto fields = wire::receive(socket_)) hear(*fields);
}

void Supervisor::hear(const std::vector<std::string>& fields) {
  if (fields.size() < 2) return;
  const std::uint64_t id = to_number(fields[1]);
  const std::lock_guard lock(mutex_);
  if (fields[0] == "exited") {
    const auto found = processes_.find(id);
    if (found != processes_.end()) found->second.running = false;
  } else if (fields[0] == "started" && fields.size() == 3) {
    processes_[id] = {.pid = static_cast<pid_t>(to_number(fields[2]))};
    if (asked_.contains(id)) answers_[id] = {};
  } else if (asked_.contains(id)) {
    if (fields[0] == "ok") answers_[id] = {};
    if (fields[0] == "failed") answers_[id] = tl::unexpected(fields.back());
  }
  changed_.notify_all();
}

void Supervisor::mark_gone() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
  for (auto& [handle, process] : processes_) process.running = false;
  changed_.notify_all();
}

bool Supervisor::wait_for_exit(Handle process, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] {
    const auto found = processes_.find(process);
    return found == processes_.end() || !found->second.running;
  });
}

bool Supervisor::running(Handle process) const {
  const std::lock_guard lock(mutex_);
  const auto found = processes_.find(process);
  return found != processes_.end() && found->second.running;
}

pid_t Supervisor::pid(Handle process) const {
  const std::lock_guard lock(mutex_);
  const auto found = processes_.find(process);
  return found == processes_.end() ? 0 : found->second.pid;
}

void Supervisor::forget(Handle process) {
  const std::lock_guard lock(mutex_);
  const auto found = processes_.find(process);
  if (found != processes_.end() && !found->second.running) processes_.erase(found);
}

}  // namespace lockbench::testbed
