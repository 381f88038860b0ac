#include "cli/console/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <system_error>

namespace lockbench::cli {
namespace {

bool is_ignored(int signal_number) {
  struct sigaction action {};
  return sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  // nohup ignores it, so that closing the terminal does not end the run.
  if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  return descriptor;
}

/// From here on a stop signal kills the process, whatever its other threads are blocked in. The
/// calling thread receives it. A handler stays: that of a screen gives the terminal back first.
void let_next_signal_kill() {
  const sigset_t set = stop_signals();
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    if (sigismember(&set, signal_number) == 1 && is_ignored(signal_number)) {
      static_cast<void>(std::signal(signal_number, SIG_DFL));
    }
  }
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

void prepare_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // The write fails then, which is reported.
  for (const int of_write : {SIGPIPE, SIGXFSZ}) static_cast<void>(std::signal(of_write, SIG_IGN));
}

StopOnSignal::StopOnSignal(std::stop_source stop, Console& console, std::string note)
    : stop_(std::move(stop)), console_(console), note_(std::move(note)) {
  const sigset_t set = stop_signals();
  signals_ = checked(signalfd(-1, &set, SFD_CLOEXEC), "signalfd");
  end_ = checked(eventfd(0, EFD_CLOEXEC), "eventfd");
  auto started =
      Thread::start([this](const std::stop_token&) { watch(); },
                    [this](const std::string& why) { console_.warn("signals: " + why); });
  if (!started) throw std::runtime_error(started.error());
  thread_ = *std::move(started);
}

StopOnSignal::~StopOnSignal() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(end_, &one, sizeof one));
  thread_.finish();
  close(signals_);
  close(end_);
}

void StopOnSignal::watch() {
  std::array<pollfd, 2> events{{{signals_, POLLIN, 0}, {end_, POLLIN, 0}}};
  // Ends with the destructor, or with the process.
  while (true) {
    if (poll(events.data(), events.size(), -1) < 0) continue;
    if (events[1].revents != 0) return;
    signalfd_siginfo info{};
    if (read(signals_, &info, sizeof info) != sizeof info) continue;
    stop_.request_stop();
    let_next_signal_kill();
    events[0].fd = -1;
    // Last, as writing may block, for instance on a paused terminal.
    console_.note(note_);
  }
}

}  // namespace lockbench::cli
