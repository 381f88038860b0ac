#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

#include "tests/integration/testbed/support.h"
#include "tests/support/main.h"

namespace lockbench::testbed {
namespace {

/// The parent that other tests kill: starts a server, prints what must vanish with it, and lives
/// on, also through Ctrl-C, until it is killed or its stdin ends.
int hold_a_server() {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  const int interrupts = signalfd(-1, &interrupt, SFD_CLOEXEC);
  const auto testbed = must_start();
  const auto server = must_start_redis(*testbed);
  std::printf("%d %d %d %s\n", server->pid(), testbed->supervisor()->own_pid(), server->port(),
              testbed->folder().c_str());
  std::fflush(stdout);
  while (true) {
    std::array<pollfd, 2> files{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{interrupts, POLLIN, 0}};
    if (poll(files.data(), files.size(), -1) < 0 || files[0].revents != 0) return 0;
    signalfd_siginfo told{};
    if (read(interrupts, &told, sizeof told) != sizeof told) return 1;
    std::puts("interrupted");
    std::fflush(stdout);
  }
}

const test::ArgumentRegistration registration({"--hold-a-server",
                                               [](std::string_view) { return hold_a_server(); }});

}  // namespace
}  // namespace lockbench::testbed
