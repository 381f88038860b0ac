#include "cli/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace lockbench {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  return descriptor;
}

[[noreturn]] void die_by(int signal_number) {
  static_cast<void>(std::signal(signal_number, SIG_DFL));
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  static_cast<void>(std::raise(signal_number));
  std::_Exit(128 + signal_number);  // not reached: the default action ends the process
}

}  // namespace

void prepare_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
}

StopOnSignal::StopOnSignal(std::stop_source stop, Console& console)
    : stop_(std::move(stop)), console_(console) {
  const sigset_t set = stop_signals();
  signals_ = checked(signalfd(-1, &set, SFD_CLOEXEC), "signalfd");
  end_ = checked(eventfd(0, EFD_CLOEXEC), "eventfd");
  thread_ = std::thread([this] { watch(); });
}

StopOnSignal::~StopOnSignal() {
  const std::uint64_t one = 1;
  static_cast<void>(!write(end_, &one, sizeof one));
  thread_.join();
  close(signals_);
  close(end_);
}

void StopOnSignal::watch() {
  std::array<pollfd, 2> events{{{signals_, POLLIN, 0}, {end_, POLLIN, 0}}};
  bool asked = false;
  // Ends with the destructor, or with the process.
  while (true) {
    if (poll(events.data(), events.size(), -1) < 0) continue;
    if (events[1].revents != 0) return;
    signalfd_siginfo info{};
    if (read(signals_, &info, sizeof info) != sizeof info) continue;
    if (asked) die_by(static_cast<int>(info.ssi_signo));
    asked = true;
    console_.note("stopping: saving what was measured; press Ctrl-C again to kill");
    stop_.request_stop();
  }
}

}  // namespace lockbench
