#include "loadgen/fibers/pool.h"

#include <sched.h>
#include <sys/prctl.h>

#include <utility>

#include "loadgen/fibers/scheduler.h"
#include "strategies/thread.h"

namespace lockbench::fibers {
namespace {

/// Sets up the calling thread, on which clients run.
// A failure of either call only makes the figures less sharp.
void tune_client_thread() noexcept {
  // Intended starts and think times are exact to the microsecond: no timer slack.
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  // A client that gets its answer must not preempt a server on the same machine, which has other
  // clients to answer. Without this, 50 clients got 15 % less out of the same Redis.
  const sched_param no_priority{};
  ::sched_setscheduler(0, SCHED_BATCH, &no_priority);
}

}  // namespace

struct Pool::Lane {
  std::unique_ptr<Scheduler> scheduler;
  Thread thread;

  void run() noexcept {
    tune_client_thread();
    scheduler->run();
  }
};

Pool::Pool(StackSize stack) : stacks_(stack) {}

tl::expected<std::unique_ptr<Pool>, std::string> Pool::make(int threads, StackSize stack) {
  std::unique_ptr<Pool> pool(new Pool(stack));
  pool->lanes_.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    auto scheduler = Scheduler::make(pool->stacks_);
    if (!scheduler) return tl::unexpected(scheduler.error());
    Lane& lane = *pool->lanes_.emplace_back(std::make_unique<Lane>());
    lane.scheduler = std::move(*scheduler);
    auto thread = Thread::start([&lane](const std::stop_token&) { lane.run(); },
                                [](const std::string&) {});  // it does not throw
    if (!thread) return tl::unexpected(thread.error());
    lane.thread = std::move(*thread);
  }
  return pool;
}

Pool::~Pool() {
  for (const auto& lane : lanes_) lane->scheduler->finish();
  // All before any is destroyed: a thread may still wake a fiber of another one.
  for (const auto& lane : lanes_) lane->thread.finish();
}

tl::expected<std::unique_ptr<Task>, std::string> Pool::start(int on, Carrier::Body body,
                                                             Carrier::OnFailure on_failure) {
  const std::size_t lane = static_cast<unsigned>(on) % lanes_.size();
  return lanes_[lane]->scheduler->start(std::move(body), std::move(on_failure));
}

Duration Pool::cpu_time(int thread) const {
  return lanes_.at(static_cast<std::size_t>(thread))->thread.cpu_time();
}

void trim_stack() noexcept {
  if (auto* const scheduler = dynamic_cast<Scheduler*>(&Carrier::current())) {
    scheduler->trim_stack();
  }
}

}  // namespace lockbench::fibers
