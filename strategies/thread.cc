#include "strategies/thread.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <ctime>
#include <exception>
#include <memory>
#include <utility>

namespace lockbench {
namespace {

// Only what is touched takes memory; sanitizers and the resolver need some room.
constexpr std::size_t kSmallStackBytes = std::size_t{256} * 1024;

struct Start {
  Thread::Body body;
  Thread::OnFailure on_failure;
  std::stop_token stop;
};

void* run(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  try {
    start->body(start->stop);
  } catch (const std::exception& error) {
    start->on_failure(error.what());
  } catch (...) {
    start->on_failure("an unknown exception");
  }
  return nullptr;
}

std::string not_started(int error) {
  std::string why = "a thread cannot be started: " + std::system_category().message(error);
  rlimit limit{};
  if (error == EAGAIN && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    why += fmt::format(" (limit of user processes: {}; ulimit -u)", limit.rlim_cur);
  }
  return why;
}

}  // namespace

tl::expected<Thread, std::string> Thread::start(Body body, OnFailure on_failure, Stack stack) {
  Thread thread;
  thread.stop_ = std::stop_source();
  auto start = std::make_unique<Start>(
      Start{std::move(body), std::move(on_failure), thread.stop_.get_token()});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack == Stack::small) pthread_attr_setstacksize(&attributes, kSmallStackBytes);
  const int error = pthread_create(&thread.handle_, &attributes, run, start.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) return tl::unexpected(not_started(error));
  start.release();  // NOLINT(bugprone-unused-return-value): the thread owns it now
  thread.started_ = true;
  return thread;
}

Duration Thread::cpu_time() const {
  clockid_t clock{};
  timespec used{};
  if (!started_ || ::pthread_getcpuclockid(handle_, &clock) != 0) return {};
  if (::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

void Thread::finish() noexcept {
  if (!std::exchange(started_, false)) return;
  stop_.request_stop();
  pthread_join(handle_, nullptr);
}

void Thread::swap(Thread& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(started_, other.started_);
  std::swap(stop_, other.stop_);
}

}  // namespace lockbench
