#pragma once

#include <cxxabi.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <boost/intrusive/set.hpp>
#include <boost/intrusive/slist.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/fibers/descriptors.h"
#include "loadgen/fibers/stacks.h"
#include "strategies/carrier.h"
#include "strategies/duration.h"
#include "strategies/thread.h"

namespace lockbench::fibers {

/// Base of anything with a deadline. The members are for Timers, except that all may read
/// `expired`.
struct Timed : boost::intrusive::set_base_hook<> {
  TimePoint deadline = TimePoint::max();  ///< max() for none
  TimePoint queued_for{};                 ///< its place in the queue; at or before the deadline
  bool expired = false;                   ///< since it was armed
};

/// Deadlines, earliest first; equal ones in the order in which they were queued. Arming one again
/// for a later time, or disarming it, leaves it in its place until then, so that a time-out for
/// each command costs nothing. For one thread.
class Timers {
 public:
  /// Replaces an earlier deadline.
  void arm(Timed& timed, TimePoint deadline) {
    timed.expired = false;
    timed.deadline = deadline;
    if (deadline == TimePoint::max()) return;
    if (timed.is_linked() && timed.queued_for <= deadline) return;
    remove(timed);
    enqueue(timed);
  }
  static void disarm(Timed& timed) { timed.deadline = TimePoint::max(); }
  /// Call it before `timed` is destroyed.
  void remove(Timed& timed) {
    if (timed.is_linked()) queue_.erase(Queue::s_iterator_to(timed));
  }

  /// No deadline is earlier; max() without any.
  TimePoint next() const { return queue_.empty() ? TimePoint::max() : queue_.begin()->queued_for; }
  /// Calls `on_expiry(timed)` for each whose deadline has passed.
  template <class OnExpiry>
  void expire(TimePoint now, OnExpiry on_expiry) {
    while (next() <= now) {
      Timed& timed = *queue_.begin();
      remove(timed);
      if (timed.deadline > now) {
        if (timed.deadline != TimePoint::max()) enqueue(timed);
        continue;
      }
      disarm(timed);
      timed.expired = true;
      on_expiry(timed);
    }
  }

 private:
  struct Earlier {
    bool operator()(const Timed& a, const Timed& b) const { return a.queued_for < b.queued_for; }
  };
  using Queue = boost::intrusive::multiset<Timed, boost::intrusive::compare<Earlier>,
                                           boost::intrusive::constant_time_size<false>>;

  void enqueue(Timed& timed) {
    timed.queued_for = timed.deadline;
    queue_.insert(timed);
  }

  Queue queue_;
};

class Scheduler;
struct Fiber;

/// One reason for a fiber to go on, passed from any thread to the fiber's own.
struct Wake {
  Fiber& fiber;
  Wake* next = nullptr;
  bool delivered = false;
};

/// A fiber's handled and uncaught exceptions, which the C++ runtime keeps per thread. The layout is
/// the ABI's (Itanium C++ ABI, exception handling, 2.2.2).
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;

  void load() const noexcept { std::memcpy(abi::__cxa_get_globals(), this, sizeof *this); }
  void save() noexcept { std::memcpy(this, abi::__cxa_get_globals(), sizeof *this); }
};

/// In the list of fibers that are ready.
using ReadyHook = boost::intrusive::slist_base_hook<boost::intrusive::tag<struct ReadyTag>>;

/// Belongs to one scheduler, and only that thread uses it, except for wake() and OnStop. With
/// thousands of fibers its memory is in no cache when its turn comes, so the members of each turn
/// come first.
struct alignas(kCacheLine) Fiber final : Waiter, Timed, ReadyHook {
  struct StopWake;
  struct OnStop {
    StopWake& stop;
    void operator()() const noexcept;
  };
  /// Wakes the fiber on a stop.
  struct StopWake {
    explicit StopWake(Fiber& fiber) : wake{fiber} {}

    Wake wake;
    std::atomic<bool> posted{false};
    std::optional<std::stop_callback<OnStop>> callback;
  };

  Fiber(Scheduler& its_scheduler, Stack its_stack,
        void (*entry)(boost::context::detail::transfer_t))
      : context(its_stack, entry), scheduler(its_scheduler), stack(its_stack) {}

  void wake() noexcept override;
  /// For a turn soon.
  void prefetch_turn() const noexcept { prefetch(this, kEachTurn); }

  // Used in each turn, together with the base classes.
  static constexpr std::size_t kEachTurn = 3 * kCacheLine;
  Context context;
  bool over = false;
  std::uint8_t latest_watched = 0;
  ExceptionState exceptions;
  Wake event_wake{*this};  ///< also its start
  /// The stops of the latest waits: commands mostly have one, the pauses between them another.
  std::array<std::stop_token, 2> watched_stops;
  Scheduler& scheduler;

  std::array<StopWake, 2> stop_wakes{StopWake(*this), StopWake(*this)};  ///< of watched_stops
  const Stack stack;
  Carrier::Body body;
  Carrier::OnFailure on_failure;
  std::stop_token stop;
  Event* ended = nullptr;  ///< its Task waits for this
};

/// The time of a scheduler's fibers.
enum class Time {
  real,
  /// Stands still while a fiber runs, and jumps to the next deadline when all wait, so hours pass
  /// in moments. For fibers that wait only for one another, not for sockets or other threads. A
  /// yield, or a wait whose deadline has passed, takes a microsecond: otherwise a loop of them
  /// would never see time pass.
  virtual_time,
};

/// Called on a scheduler's thread, for a sample of the answers from sockets: how long the fiber
/// that waits for it had no turn, as others had theirs. Must not wait.
using OnLateTurn = std::function<void(Duration)>;

/// Runs the fibers of one thread: each until it waits, then the next one that is ready. Carrier's
/// methods are for its fibers only, except start() and forget(), which are thread-safe.
class Scheduler final : public Carrier {
 public:
  /// `stacks` must outlive it. The error says why it cannot be made.
  static tl::expected<std::unique_ptr<Scheduler>, std::string> make(Stacks& stacks,
                                                                    Time time = Time::real,
                                                                    OnLateTurn on_late_turn = {});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler() override;

  /// Runs fibers on the calling thread until finish() was called and all have ended.
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

  /// As the function below. Call it on a fiber.
  void trim_stack() noexcept;

  /// Makes the wake's fiber ready. Thread-safe.
  void post(Wake& wake) noexcept;

 private:
  /// First in, first out.
  using Ready = boost::intrusive::slist<Fiber, boost::intrusive::base_hook<ReadyHook>,
                                        boost::intrusive::cache_last<true>,
                                        boost::intrusive::constant_time_size<false>>;

  Scheduler(Stacks& stacks, std::unique_ptr<Descriptors> descriptors, Time time,
            OnLateTurn on_late_turn);

  static void enter(boost::context::detail::transfer_t transfer) noexcept;
  static void run_body(Fiber& fiber) noexcept;

  void deliver(Wake& wake) noexcept;
  /// False if it is ready already.
  bool make_ready(Fiber& fiber) noexcept;
  void take_inbox() noexcept;
  void run_ready() noexcept;
  void prefetch_next() const noexcept;
  void resume(Fiber& fiber) noexcept;
  void end(Fiber& fiber) noexcept;
  void look_around() noexcept;
  void look_at_descriptors(Duration longest) noexcept;
  void note_turns() noexcept;
  /// How long nothing happens unless another thread wakes a fiber.
  Duration until_next_timer() noexcept;
  /// Called if nothing more can happen in virtual time. Ends the program if no other thread wakes a
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

  // The turns after a look, for a sample of the looks.
  const OnLateTurn on_late_turn_;
  unsigned looks_ = 0;  ///< that found some; may wrap
  TimePoint looked_at_{};
  int ready_before_ = 0, found_ = 0;  ///< fibers, by that look; none found: it is not in the sample

  // From other threads.
  alignas(kCacheLine) std::atomic<Wake*> inbox_{nullptr};  ///< latest first
  std::atomic<bool> asleep_{false};                        ///< an interrupt is needed
  std::atomic<bool> finishing_{false};
  std::atomic<int> posting_{0};  ///< threads that still use it
};

/// The generator's threads, each of which runs its fibers one after the other. All Tasks must be
/// destroyed before it.
class Pool {
 public:
  /// The error says which resource is missing, and why.
  static tl::expected<std::unique_ptr<Pool>, std::string> make(int threads, StackSize stack = {},
                                                               const OnLateTurn& on_late_turn = {});
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  /// Runs `body` as a fiber of thread `on` modulo the number of threads. Thread-safe.
  tl::expected<std::unique_ptr<Task>, std::string> start(int on, Carrier::Body body,
                                                         Carrier::OnFailure on_failure);

  int threads() const { return static_cast<int>(lanes_.size()); }
  /// The processor time of this thread. Thread-safe.
  Duration cpu_time(int thread) const {
    return lanes_.at(static_cast<std::size_t>(thread))->thread.cpu_time();
  }

 private:
  struct Lane {
    std::unique_ptr<Scheduler> scheduler;
    Thread thread;
  };

  explicit Pool(StackSize stack) : stacks_(stack) {}

  Stacks stacks_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

/// Gives back the stack memory that the calling fiber does not use now: connecting needs more of it
/// than later work. Does nothing on a thread of its own.
void trim_stack() noexcept;

}  // namespace lockbench::fibers
