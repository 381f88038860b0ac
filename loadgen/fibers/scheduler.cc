#include "loadgen/fibers/scheduler.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

namespace lockbench::fibers {
namespace {

// Looks at the descriptors after this many turns even if fibers are ready. A system call for each
// turn would cost more than the shortest sections.
constexpr int kRunsPerLook = 16;
constexpr Duration kLongestLook = std::chrono::hours(1);
// One look in so many is in the sample of turns: reading the clock for each would take as long as a
// tenth of the shortest sections.
constexpr unsigned kLooksPerSample = 8;
// Not zero, so that earlier times exist too. The time of day is 2026-01-01.
constexpr TimePoint kVirtualStart{std::chrono::hours(1)};
constexpr WallTime kVirtualWallStart = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
constexpr Duration kVirtualYield = std::chrono::microseconds(1);
// On virtual time, how long another thread may take to wake a fiber.
constexpr Duration kLongestStandstill = std::chrono::minutes(1);
// Stack that trim_stack() and its system call use.
constexpr std::ptrdiff_t kStackOfTrimming = kSanitized ? 8192 : 1024;

/// Sets up the calling thread, on which clients run.
// If either call fails, the figures are only less precise.
void tune_client_thread() noexcept {
  // No timer slack, as intended starts and think times are exact to the microsecond.
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  // A client that gets its answer must not preempt a server on the same machine, which has other
  // clients to answer. Without this, 50 clients got 15 % less out of the same Redis.
  const sched_param no_priority{};
  ::sched_setscheduler(0, SCHED_BATCH, &no_priority);
}

class FiberTask final : public Task {
 public:
  FiberTask() = default;
  FiberTask(const FiberTask&) = delete;
  FiberTask& operator=(const FiberTask&) = delete;
  ~FiberTask() override {
    stop.request_stop();
    Carrier::current().wait(&ended, TimePoint::max(), {});
  }

  std::stop_source stop;
  CarrierEvent ended;
};

}  // namespace

void Fiber::wake() noexcept { scheduler.post(event_wake); }

void Fiber::OnStop::operator()() const noexcept {
  stop.posted.store(true, std::memory_order_relaxed);
  stop.wake.fiber.scheduler.post(stop.wake);
}

tl::expected<std::unique_ptr<Scheduler>, std::string> Scheduler::make(Stacks& stacks, Time time,
                                                                      OnLateTurn on_late_turn) {
  auto descriptors = Descriptors::make();
  if (!descriptors) return tl::unexpected(descriptors.error());
  return std::unique_ptr<Scheduler>(
      new Scheduler(stacks, std::move(*descriptors), time, std::move(on_late_turn)));
}

Scheduler::Scheduler(Stacks& stacks, std::unique_ptr<Descriptors> descriptors, Time time,
                     OnLateTurn on_late_turn)
    : stacks_(stacks),
      descriptors_(std::move(descriptors)),
      on_late_turn_(std::move(on_late_turn)) {
  if (time == Time::virtual_time) virtual_now_ = kVirtualStart;
}

Scheduler::~Scheduler() {
  // Bounded: the thread that posted the last fiber's wake is about to leave post().
  while (posting_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

void Scheduler::run() noexcept {
  Context loop;
  loop_ = &loop;
  set_current(this);
  while (true) {
    take_inbox();
    run_ready();
    if (found_ > 0) note_turns();
    if (!ready_.empty() && runs_since_look_ < kRunsPerLook) continue;
    const bool idle = ready_.empty() && fibers_ == 0;
    if (idle && finishing_.load() && inbox_.load() == nullptr) break;
    look_around();
  }
  set_current(nullptr);
  loop_ = nullptr;
}

void Scheduler::finish() noexcept {
  finishing_.store(true);
  descriptors_->interrupt();
}

WallTime Scheduler::wall_now() const noexcept {
  if (!virtual_now_) return Carrier::wall_now();
  return kVirtualWallStart + (*virtual_now_ - kVirtualStart);
}

std::unique_ptr<Event> Scheduler::make_event() { return std::make_unique<CarrierEvent>(); }

WaitResult Scheduler::wait(Event* event, TimePoint deadline, const std::stop_token& stop) {
  auto* const awaited = static_cast<CarrierEvent*>(event);
  if (awaited != nullptr && awaited->take()) return WaitResult::signalled;
  if (stop.stop_requested()) return WaitResult::stopped;
  if (deadline <= now()) {
    if (!virtual_now_) return WaitResult::timed_out;
    deadline = *virtual_now_ + kVirtualYield;
  }
  Fiber& self = *running_;
  watch_stop(self, stop);
  self.event_wake.delivered = false;
  timers_.arm(self, deadline);
  if (awaited != nullptr && !awaited->await(self)) {
    Timers::disarm(self);
    awaited->take();
    return WaitResult::signalled;
  }
  while (!self.event_wake.delivered && !self.expired && !stop.stop_requested()) park();
  Timers::disarm(self);
  if (awaited != nullptr && !awaited->leave(self)) {
    // The setting thread may not have posted the wake yet; a later wait must not get it.
    while (!self.event_wake.delivered) park();
    awaited->take();
    return WaitResult::signalled;
  }
  return stop.stop_requested() ? WaitResult::stopped : WaitResult::timed_out;
}

void Scheduler::poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) {
  if (longest <= Duration::zero() || stop.stop_requested()) {
    ::poll(descriptors.data(), descriptors.size(), 0);
    return;
  }
  Fiber& self = *running_;
  watch_stop(self, stop);
  // No other fiber runs before the first pause, so no event is missed.
  if (descriptors_->take_ready(descriptors)) return;
  struct Leaving {
    ~Leaving() { watched.leave(polled, self); }
    Descriptors& watched;
    std::span<pollfd> polled;
    const Fiber& self;
  };
  const Leaving leaving{*descriptors_, descriptors, self};
  descriptors_->await(descriptors, self);
  timers_.arm(self, longest >= kLongestDuration ? TimePoint::max() : now() + longest);
  while (!self.expired && !stop.stop_requested()) {
    if (!descriptors_->arm(descriptors)) break;
    park();
    if (descriptors_->take_ready(descriptors)) break;
  }
  Timers::disarm(self);
}

void Scheduler::yield() {
  if (virtual_now_) {
    wait(nullptr, *virtual_now_ + kVirtualYield, {});
    return;
  }
  if (ready_.empty() && runs_since_look_ < kRunsPerLook) {
    ++runs_since_look_;
    return;
  }
  ready_.push_back(*running_);
  park();
}

tl::expected<std::unique_ptr<Task>, std::string> Scheduler::start(Body body, OnFailure on_failure) {
  const auto stack = stacks_.take();
  if (!stack) return tl::unexpected(stack.error());
  auto fiber = std::make_unique<Fiber>(*this, *stack, &Scheduler::enter);
  fiber->body = std::move(body);
  fiber->on_failure = std::move(on_failure);
  auto task = std::make_unique<FiberTask>();  // from here on it waits for the end
  fiber->stop = task->stop.get_token();
  fiber->ended = &task->ended;
  post(fiber.release()->event_wake);  // the scheduler owns it now
  return task;
}

void Scheduler::trim_stack() noexcept {
  const auto* const frame = static_cast<const std::byte*>(__builtin_frame_address(0));
  Stacks::trim(running_->stack, frame - kStackOfTrimming);
}

// Wakes. A fiber does not go on before a posted wake is delivered, so posting keeps the fiber, and
// with it the scheduler, in existence.

void Scheduler::post(Wake& wake) noexcept {
  if (&Carrier::current() == this) return deliver(wake);
  posting_.fetch_add(1, std::memory_order_relaxed);
  Wake* latest = inbox_.load(std::memory_order_relaxed);
  do {
    wake.next = latest;
  } while (!inbox_.compare_exchange_weak(latest, &wake));
  if (asleep_.exchange(false)) descriptors_->interrupt();
  posting_.fetch_sub(1, std::memory_order_release);
}

void Scheduler::deliver(Wake& wake) noexcept {
  wake.delivered = true;
  make_ready(wake.fiber);
}

bool Scheduler::make_ready(Fiber& fiber) noexcept {
  // The running fiber checks by itself before it waits.
  if (fiber.ReadyHook::is_linked() || &fiber == running_) return false;
  ready_.push_back(fiber);
  return true;
}

void Scheduler::take_inbox() noexcept {
  if (inbox_.load(std::memory_order_relaxed) == nullptr) return;
  Wake* latest = inbox_.exchange(nullptr, std::memory_order_acquire);
  Wake* first = nullptr;
  while (latest != nullptr) {
    Wake* const next = std::exchange(latest->next, first);
    first = std::exchange(latest, next);
  }
  while (first != nullptr) deliver(*std::exchange(first, first->next));
}

// The loop.

void Scheduler::run_ready() noexcept {
  // Fibers that become ready meanwhile run after the next look at the inbox.
  bool more = !ready_.empty();
  const Fiber* const last = more ? &ready_.back() : nullptr;
  while (more) {
    Fiber& fiber = ready_.front();
    ready_.pop_front();
    more = &fiber != last;
    prefetch_next();
    resume(fiber);
    ++runs_since_look_;
  }
}

/// While one fiber runs, loads the memory of the next ones into the cache.
void Scheduler::prefetch_next() const noexcept {
  auto next = ready_.begin();
  if (next == ready_.end()) return;
  // The fiber itself was fetched one turn ago.
  next->context.prefetch_frames();
  if (++next != ready_.end()) next->prefetch_turn();
}

void Scheduler::resume(Fiber& fiber) noexcept {
  running_ = &fiber;
  fiber.exceptions.load();
  loop_->switch_to(fiber.context);
  fiber.exceptions.save();
  running_ = nullptr;
  stacks_.check(fiber.stack);
  if (fiber.over) end(fiber);
}

void Scheduler::end(Fiber& fiber) noexcept {
  Event* const ended = fiber.ended;
  timers_.remove(fiber);
  stacks_.give_back(fiber.stack);
  std::unique_ptr<Fiber>(&fiber).reset();  // start() released it
  --fibers_;
  ended->set();
}

void Scheduler::look_around() noexcept {
  Duration longest = Duration::zero();
  if (ready_.empty()) {
    asleep_.store(true);
    if (inbox_.load() == nullptr) longest = until_next_timer();
  }
  if (virtual_now_) {
    // Asks the kernel only if nothing can happen in virtual time.
    if (longest > Duration::zero()) stand_still();
  } else {
    look_at_descriptors(longest);
  }
  asleep_.store(false, std::memory_order_relaxed);
  runs_since_look_ = 0;
  if (timers_.next() == TimePoint::max()) return;
  timers_.expire(now(), [this](Timed& timed) { make_ready(static_cast<Fiber&>(timed)); });
}

void Scheduler::look_at_descriptors(Duration longest) noexcept {
  const bool sampled = on_late_turn_ && looks_ % kLooksPerSample == 0;
  ready_before_ = sampled ? static_cast<int>(ready_.size()) : 0;
  int found = 0;
  descriptors_->harvest(longest, [this, &found](Fiber& fiber) {
    if (make_ready(fiber)) ++found;
  });
  if (found == 0) return;
  ++looks_;
  if (!sampled) return;
  found_ = found;
  looked_at_ = now();
}

/// All that the look found have had their turn: each takes the time as long as the others.
void Scheduler::note_turns() noexcept {
  const Duration each = (now() - looked_at_) / std::max(1, runs_since_look_);
  for (int i = 0; i < found_; ++i) on_late_turn_((ready_before_ + i) * each);
  found_ = 0;
}

Duration Scheduler::until_next_timer() noexcept {
  const TimePoint next = timers_.next();
  if (next == TimePoint::max()) return virtual_now_ ? kLongestStandstill : Duration::max();
  if (!virtual_now_) return std::clamp(next - now(), Duration::zero(), kLongestLook);
  virtual_now_ = std::max(*virtual_now_, next);
  return Duration::zero();
}

void Scheduler::stand_still() noexcept {
  const TimePoint began = BootClock::now();
  descriptors_->harvest(kLongestStandstill, [this](Fiber& fiber) { make_ready(fiber); });
  const bool woken = !ready_.empty() || inbox_.load() != nullptr || fibers_ == 0;
  if (woken || BootClock::now() - began < kLongestStandstill) return;
  fmt::print(stderr, "virtual time stands still: {} fibers wait for events that cannot happen\n",
             fibers_);
  std::abort();
}

// On a fiber.

void Scheduler::enter(boost::context::detail::transfer_t transfer) noexcept {
  auto& scheduler = static_cast<Scheduler&>(Carrier::current());
  Fiber& self = *scheduler.running_;
  self.context.arrived(transfer);
  ++scheduler.fibers_;
  run_body(self);
  for (std::size_t which = 0; which < self.watched_stops.size(); ++which) {
    scheduler.unwatch_stop(self, which);
  }
  self.over = true;
  self.context.end_in(*scheduler.loop_);
}

void Scheduler::run_body(Fiber& fiber) noexcept {
  try {
    fiber.body(fiber.stop);
  } catch (const std::exception& error) {
    fiber.on_failure(error.what());
  } catch (...) {
    fiber.on_failure("an unknown exception");
  }
  // Destroyed here, on the fiber, as destroying what they hold may wait.
  fiber.body = nullptr;
  fiber.on_failure = nullptr;
}

void Scheduler::park() noexcept {
  const int error = errno;
  running_->context.switch_to(*loop_);
  errno = error;
}

void Scheduler::watch_stop(Fiber& self, const std::stop_token& stop) {
  // Registering with a stop that all clients share costs, with thousands of them, cache misses
  // under one lock.
  if (!stop.stop_possible() || stop == self.watched_stops[self.latest_watched]) return;
  self.latest_watched = self.latest_watched == 0 ? 1 : 0;
  std::stop_token& watched = self.watched_stops[self.latest_watched];
  if (stop == watched) return;
  unwatch_stop(self, self.latest_watched);
  watched = stop;
  Fiber::StopWake& wake = self.stop_wakes[self.latest_watched];
  wake.callback.emplace(stop, Fiber::OnStop{wake});
}

void Scheduler::unwatch_stop(Fiber& self, std::size_t which) noexcept {
  Fiber::StopWake& stop = self.stop_wakes[which];
  stop.callback.reset();  // waits for a call under way on another thread
  if (stop.posted.load(std::memory_order_relaxed)) {
    while (!stop.wake.delivered) park();
  }
  stop.posted.store(false, std::memory_order_relaxed);
  stop.wake.delivered = false;
  self.watched_stops[which] = {};
}

tl::expected<std::unique_ptr<Pool>, std::string> Pool::make(int threads, StackSize stack,
                                                            const OnLateTurn& on_late_turn) {
  std::unique_ptr<Pool> pool(new Pool(stack));
  pool->lanes_.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    auto scheduler = Scheduler::make(pool->stacks_, Time::real, on_late_turn);
    if (!scheduler) return tl::unexpected(scheduler.error());
    Lane& lane = *pool->lanes_.emplace_back(std::make_unique<Lane>());
    lane.scheduler = std::move(*scheduler);
    auto thread = Thread::start(
        [&own = *lane.scheduler](const std::stop_token&) {
          tune_client_thread();
          own.run();
        },
        [](const std::string&) {});  // it does not throw
    if (!thread) return tl::unexpected(thread.error());
    lane.thread = std::move(*thread);
  }
  return pool;
}

Pool::~Pool() {
  for (const auto& lane : lanes_) lane->scheduler->finish();
  // All threads end before any is destroyed: a thread may still wake another's fiber.
  for (const auto& lane : lanes_) lane->thread.finish();
}

tl::expected<std::unique_ptr<Task>, std::string> Pool::start(int on, Carrier::Body body,
                                                             Carrier::OnFailure on_failure) {
  const std::size_t lane = static_cast<unsigned>(on) % lanes_.size();
  return lanes_[lane]->scheduler->start(std::move(body), std::move(on_failure));
}

void trim_stack() noexcept {
  if (auto* const scheduler = dynamic_cast<Scheduler*>(&Carrier::current())) {
    scheduler->trim_stack();
  }
}

}  // namespace lockbench::fibers
