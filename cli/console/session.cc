#include "cli/console/session.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>

#include "cli/console/publish.h"
#include "cli/console/ranks.h"

namespace lockbench::cli {
namespace {

/// A UsageError if a rank cannot reach the private servers, which listen on this host only.
void check_reach(const Ranks& ranks, const deployment::Deployment& deployment) {
  const std::string far = ranks.beyond_loopback();
  if (far.empty() || deployment.stores.empty()) return;
  const bool only_counter = deployment.stores.size() == 1 && deployment.stores.contains("counter");
  if (only_counter) {
    throw UsageError("{}: give --counter-redis URL, with --resource redis, for the counter", far);
  }
  throw UsageError("{}: give --{} with a URL that all hosts reach", far,
                   deployment.stores.begin()->first);
}

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

/// From now on a stop signal kills the process, even if its other threads are blocked. The calling
/// thread receives it. An ignored signal gets its default action back.
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

Session::Session(const OutputOptions& output, bool status_line, std::string stopping)
    : console_(stderr, status_line && is_terminal(stderr), output.quiet,
               output.events.empty() ? nullptr : must(Events::open(output.events), "--events")) {
  prepare_signals();
  on_signal_.emplace(stop_, console_, std::move(stopping));
  if (const Ranks* const ranks = Ranks::joined()) ranks->warn(console_);
}

std::optional<deployment::Deployment> Session::deploy(const LoadOptions& options,
                                                      std::vector<Selected>& selected,
                                                      std::vector<results::Skipped>& skipped) {
  auto deployed = cli::deploy(options, selected, skipped, stop());
  // A failure after the stop is a consequence of it.
  if (stopped()) return std::nullopt;
  deployment::Deployment deployment = must(std::move(deployed));
  if (const Ranks* const ranks = Ranks::joined()) check_reach(*ranks, deployment);
  warn_of_build();
  for (const std::string& line : deployment.warnings) console_.warn("warning: " + line);
  for (const results::Skipped& one : skipped) {
    console_.note(fmt::format("skipped: {}: {}", one.strategy, one.reason));
  }
  return deployment;
}

void Session::warn_of_build() {
  const std::string type = build_facts().build_type;
  if (type == "Release" || type == "RelWithDebInfo") return;
  console_.warn(fmt::format("warning: this is a {} build: its figures are not to be trusted",
                            type.empty() ? "non-optimised" : type));
}

int Session::interrupted_early() {
  console_.warn("interrupted before the load began: nothing was measured");
  return exit_code::kInterrupted;
}

void prepare_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // The write then fails, which is reported.
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
