#include "loadgen/fibers/overflow.h"

#include <unistd.h>

#include <csignal>
#include <mutex>
#include <string>

#include "loadgen/fibers/sanitizers.h"
#include "loadgen/fibers/scheduler.h"

namespace lockbench::fibers {
namespace {

// The handler has no stack of the fiber left to run on. The registers alone take up to 11 KiB.
constexpr std::size_t kSignalStackBytes = std::size_t{32} * 1024;

/// What the handler may use on a thread.
struct Watched {
  const Scheduler* scheduler = nullptr;
  std::string line;
};

thread_local Watched watched;

/// Then the same access ends the program as if there were no handler, core dump included.
void tell(int /*signal*/, siginfo_t* info, void* /*context*/) {
  if (watched.scheduler == nullptr || !watched.scheduler->guards(info->si_addr)) return;
  if (::write(STDERR_FILENO, watched.line.data(), watched.line.size()) < 0) return;
}

void handle_faults() {
  struct sigaction present {};
  if (::sigaction(SIGSEGV, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_sigaction = &tell;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

OverflowNotice::OverflowNotice(const Scheduler& scheduler) {
  if (kSanitized) return;  // they tell it themselves
  static std::once_flag once;
  std::call_once(once, handle_faults);
  signal_stack_ = std::make_unique<std::byte[]>(kSignalStackBytes);
  const stack_t stack{.ss_sp = signal_stack_.get(), .ss_flags = 0, .ss_size = kSignalStackBytes};
  ::sigaltstack(&stack, nullptr);
  watched = {&scheduler, scheduler.overflow_line()};
}

OverflowNotice::~OverflowNotice() {
  if (kSanitized) return;
  watched = {};
  const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  ::sigaltstack(&none, nullptr);
}

}  // namespace lockbench::fibers
