#pragma once

#include <poll.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "loadgen/fibers/descriptors.h"
#include "loadgen/fibers/fiber.h"
#include "loadgen/fibers/stacks.h"
#include "loadgen/fibers/timers.h"
#include "strategies/carrier.h"

namespace lockbench::fibers {

/// The time in which a scheduler's fibers live.
enum class Time {
  real,
  /// Stands still while a fiber runs, and jumps to the next deadline when all wait: what lasts
  /// hours is played in moments. For fibers that wait for one another only, not for sockets or
  /// other threads. A yield takes a microsecond, and so does a wait whose deadline has passed, or
  /// a loop of them would never see time pass.
  virtual_time,
};

/// Runs the fibers of one thread: each until it waits, then the next one that is ready. Carrier's
/// methods are for its fibers only, except start() and forget(), which are thread-safe.
class Scheduler final : public Carrier {
 public:
  /// `stacks` must outlive it. The error says why there can be none.
  static tl::expected<std::unique_ptr<Scheduler>, std::string> make(Stacks& stacks,
                                                                    Time time = Time::real);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler() override;

  /// Runs fibers on the calling thread, until finish() was called and all have ended.
  void run() noexcept;
  /// Thread-safe.
  void finish() noexcept;

  bool shared() const noexcept override { return true; }
  TimePoint now() const noexcept override {
    return virtual_now_ ? *virtual_now_ : BootClock::now();
  }
  WallTime wall_now() const noexcept override;
  std::unique_ptr<Event> make_event() override;
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override;
  void poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) override;
  void keep(int descriptor) override { descriptors_->keep(descriptor); }
  void forget(int descriptor) noexcept override { descriptors_->forget(descriptor); }
  void yield() override;
  tl::expected<std::unique_ptr<Task>, std::string> start(Body body, OnFailure on_failure) override;

  /// See fibers::trim_stack(); on a fiber.
  void trim_stack() noexcept;

  /// Makes the wake's fiber ready. Thread-safe.
  void post(Wake& wake) noexcept;

 private:
  /// First in, first out.
  class Ready {
   public:
    bool empty() const { return first_ == nullptr; }
    void push(Fiber& fiber);
    Fiber& pop();
    Fiber* last() const { return last_; }

   private:
    Fiber* first_ = nullptr;
    Fiber* last_ = nullptr;
  };

  Scheduler(Stacks& stacks, std::unique_ptr<Descriptors> descriptors, Time time);

  static void enter(boost::context::detail::transfer_t transfer) noexcept;
  static void run_body(Fiber& fiber) noexcept;

  void deliver(Wake& wake) noexcept;
  void make_ready(Fiber& fiber) noexcept;
  void take_inbox() noexcept;
  void run_ready() noexcept;
  static void prefetch_next(const Fiber& fiber) noexcept;
  void resume(Fiber& fiber) noexcept;
  void end(Fiber& fiber) noexcept;
  void look_around() noexcept;
  /// How long nothing happens, unless somebody else wakes a fiber.
  Duration until_next_timer() noexcept;
  /// Nothing is left that could happen in virtual time. Ends the program if no other thread wakes a
  /// fiber either.
  void stand_still() noexcept;

  // On a fiber:
  void park() noexcept;
  void watch_stop(Fiber& self, const std::stop_token& stop);
  void unwatch_stop(Fiber& self, std::size_t which) noexcept;

  Stacks& stacks_;
  const std::unique_ptr<Descriptors> descriptors_;
  std::optional<TimePoint> virtual_now_;  ///< nothing: time is real
  Timers timers_;
  Ready ready_;
  Context* loop_ = nullptr;   ///< of run()
  Fiber* running_ = nullptr;  ///< null: run() itself
  std::size_t fibers_ = 0;
  int runs_since_look_ = 0;

  // From other threads.
  alignas(kCacheLine) std::atomic<Wake*> inbox_{nullptr};  ///< latest first
  std::atomic<bool> asleep_{false};                        ///< an interrupt is needed
  std::atomic<bool> finishing_{false};
  std::atomic<int> posting_{0};  ///< threads that still use it
};

}  // namespace lockbench::fibers
