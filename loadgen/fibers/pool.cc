#include "loadgen/fibers/pool.h"

#include <pthread.h>

#include <atomic>
#include <ctime>
#include <utility>

#include "loadgen/fibers/client_thread.h"
#include "loadgen/fibers/overflow.h"
#include "loadgen/fibers/scheduler.h"
#include "strategies/thread.h"

namespace lockbench::fibers {

struct Pool::Lane {
  std::unique_ptr<Scheduler> scheduler;
  std::atomic<clockid_t> cpu_clock{0};  ///< 0: not known yet; a thread's is negative
  Thread thread;

  void run() noexcept {
    tune_client_thread();
    clockid_t clock = 0;
    ::pthread_getcpuclockid(::pthread_self(), &clock);
    cpu_clock.store(clock);
    cpu_clock.notify_all();
    const OverflowNotice notice(*scheduler);
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
  const Lane& lane = *lanes_.at(static_cast<std::size_t>(thread));
  lane.cpu_clock.wait(0);
  timespec used{};
  ::clock_gettime(lane.cpu_clock.load(), &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

void trim_stack() noexcept {
  if (auto* const scheduler = dynamic_cast<Scheduler*>(&Carrier::current())) {
    scheduler->trim_stack();
  }
}

}  // namespace lockbench::fibers
