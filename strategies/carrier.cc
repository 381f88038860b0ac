#include "strategies/carrier.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "strategies/thread.h"

namespace lockbench {
namespace {

/// A waiting thread. Uses a futex: std::atomic cannot wait with a deadline, and a condition
/// variable might be destroyed while another thread still notifies it.
class ThreadWaiter final : public Waiter {
 public:
  static constexpr std::uint32_t kWoken = 1, kStopped = 2;

  void reset() noexcept { bits_.store(0, std::memory_order_relaxed); }
  void wake() noexcept override { raise(kWoken); }
  void stop() noexcept { raise(kStopped); }

  /// Blocks until one of these bits is set, or the deadline.
  void block(std::uint32_t until, TimePoint deadline) noexcept {
    while (true) {
      const std::uint32_t bits = bits_.load(std::memory_order_acquire);
      if ((bits & until) != 0) return;
      timespec left{};
      if (deadline != TimePoint::max()) {
        const TimePoint now = BootClock::now();
        if (now >= deadline) return;
        left = to_timespec(deadline - now);
      }
      ::syscall(SYS_futex, &bits_, FUTEX_WAIT_PRIVATE, bits,
                deadline == TimePoint::max() ? nullptr : &left, nullptr, 0);
    }
  }

 private:
  void raise(std::uint32_t bit) noexcept {
    bits_.fetch_or(bit, std::memory_order_release);
    // The thread may be gone by now; waking an address without waiters is harmless.
    ::syscall(SYS_futex, &bits_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  std::atomic<std::uint32_t> bits_{0};
};

constinit thread_local ThreadWaiter this_waiter;
constinit thread_local Carrier* shared_carrier = nullptr;

/// How often a poll checks for a stop if no descriptor was left for a bell.
constexpr Duration kWithoutBell = std::chrono::milliseconds(20);

/// Ends a poll of this thread. The first poll that can be stopped makes it; later ones reuse it.
class StopBell {
 public:
  StopBell() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  StopBell(const StopBell&) = delete;
  StopBell& operator=(const StopBell&) = delete;
  ~StopBell() {
    if (fd_ >= 0) ::close(fd_);
  }

  /// -1 if none was left.
  int descriptor() const noexcept { return fd_; }
  void ring() const noexcept { ::eventfd_write(fd_, 1); }
  void silence() const noexcept {
    eventfd_t rung = 0;
    ::eventfd_read(fd_, &rung);
  }

 private:
  const int fd_;
};

void poll_once(std::span<pollfd> descriptors, Duration longest) {
  const timespec limit = to_timespec(longest);
  ::ppoll(descriptors.data(), descriptors.size(), &limit, nullptr);
}

struct ThreadTask : Task {
  explicit ThreadTask(Thread started) : thread(std::move(started)) {}
  Thread thread;
};

/// Has no state, so one instance serves all threads.
class ThreadCarrier final : public Carrier {
 public:
  bool shared() const noexcept override { return false; }

  std::unique_ptr<Event> make_event() override { return std::make_unique<CarrierEvent>(); }

  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    auto* const awaited = static_cast<CarrierEvent*>(event);
    if (awaited != nullptr && awaited->take()) return WaitResult::signalled;
    if (stop.stop_requested()) return WaitResult::stopped;
    ThreadWaiter& self = this_waiter;
    self.reset();
    if (awaited != nullptr && !awaited->await(self)) {
      awaited->take();
      return WaitResult::signalled;
    }
    {
      const std::stop_callback on_stop(stop, [&self]() noexcept { self.stop(); });
      self.block(ThreadWaiter::kWoken | ThreadWaiter::kStopped, deadline);
    }
    if (awaited != nullptr && !awaited->leave(self)) {
      // The setter may not have called wake() yet.
      self.block(ThreadWaiter::kWoken, TimePoint::max());
      awaited->take();
      return WaitResult::signalled;
    }
    return stop.stop_requested() ? WaitResult::stopped : WaitResult::timed_out;
  }

  void poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) override {
    const Duration left = std::max(longest, Duration::zero());
    if (left == Duration::zero() || !stop.stop_possible()) return poll_once(descriptors, left);
    if (stop.stop_requested()) return poll_once(descriptors, Duration::zero());
    thread_local const StopBell bell;
    thread_local std::vector<pollfd> all;
    all.assign(descriptors.begin(), descriptors.end());
    all.push_back({.fd = bell.descriptor(), .events = POLLIN, .revents = 0});
    {
      // Captured: the callback runs on the stopping thread, where `bell` is another one.
      const std::stop_callback on_stop(stop, [&ours = bell]() noexcept { ours.ring(); });
      poll_once(all, bell.descriptor() < 0 ? std::min(left, kWithoutBell) : left);
    }
    if (stop.stop_requested()) bell.silence();
    std::copy_n(all.begin(), descriptors.size(), descriptors.begin());
  }

  void keep(int /*descriptor*/) override {}
  void forget(int /*descriptor*/) noexcept override {}
  void yield() override {}

  tl::expected<std::unique_ptr<Task>, std::string> start(Body body, OnFailure on_failure) override {
    auto thread = Thread::start(std::move(body), std::move(on_failure));
    if (!thread) return tl::unexpected(thread.error());
    return std::make_unique<ThreadTask>(std::move(*thread));
  }
};

constinit ThreadCarrier thread_carrier;

}  // namespace

Carrier& Carrier::current() noexcept {
  return shared_carrier == nullptr ? thread_carrier : *shared_carrier;
}

void Carrier::set_current(Carrier* carrier) noexcept { shared_carrier = carrier; }

}  // namespace lockbench
