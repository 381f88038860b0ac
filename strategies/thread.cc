#include "strategies/thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <cerrno>
#include <ctime>
#include <exception>
#include <utility>

namespace lockbench {
namespace {

std::string not_started(int error) {
  std::string why = "a thread cannot be started: " + std::system_category().message(error);
  rlimit limit{};
  if (error == EAGAIN && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    why += fmt::format(" (limit of user processes: {}; ulimit -u)", limit.rlim_cur);
  }
  return why;
}

}  // namespace

tl::expected<Thread, std::string> Thread::start(Body body, OnFailure on_failure) {
  Thread started;
  try {
    started.thread_ = std::jthread(
        [body = std::move(body), on_failure = std::move(on_failure)](const std::stop_token& stop) {
          try {
            body(stop);
          } catch (const std::exception& error) {
            on_failure(error.what());
          } catch (...) {
            on_failure("an unknown exception");
          }
        });
  } catch (const std::system_error& error) {
    return tl::unexpected(not_started(error.code().value()));
  }
  return started;
}

Duration Thread::cpu_time() {
  clockid_t clock{};
  timespec used{};
  if (!started() || ::pthread_getcpuclockid(thread_.native_handle(), &clock) != 0) return {};
  if (::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace lockbench
