#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>

#include "loadgen/run/live_run.h"

// The clients' threads: how they begin, connect, and end.
namespace lockbench::loadgen {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(200);
// A server's accept queue is short; more at once would make connections wait for retransmissions.
constexpr int kConnectingAtOnce = 64;

/// Neither call can fail for a thread's own self in a way that matters: both only sharpen the
/// figures.
void be_a_client_thread() {
  // Intended starts and think times are to the microsecond: no timer slack.
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  // A client that gets its answer must not push aside a server on the same machine, which has other
  // clients to answer: without this, 50 clients got 15 % less out of the same Redis.
  const sched_param no_priority{};
  ::sched_setscheduler(0, SCHED_BATCH, &no_priority);
}

}  // namespace

tl::expected<void, std::string> LiveRun::start_clients() {
  const int clients = plan_.workload.clients;
  progress_.clients = clients;
  threads_.reserve(static_cast<std::size_t>(clients));
  std::string failed;
  for (int number = 0; number < clients && failed.empty() && !external_.stop_requested();
       ++number) {
    // Bounds how many connect at once, and waits for those that do.
    std::unique_lock lock(mutex_);
    changed_.wait(
        lock, [&] { return number - connected_ < kConnectingAtOnce || !connect_error_.empty(); });
    failed = connect_error_;
    lock.unlock();
    if (!failed.empty()) break;
    if (number % 256 == 0)
      report(Progress::Phase::connecting, static_cast<double>(number) / clients);
    auto thread = SmallThread::start([this, number] { client_body(number); });
    if (thread) {
      threads_.push_back(std::move(*thread));
    } else {
      failed = fmt::format("client {} of {} could not be started: {}", number + 1, clients,
                           thread.error());
    }
  }
  if (failed.empty()) {
    if (auto connected = await_connected(); !connected) failed = connected.error();
  }
  if (failed.empty()) return {};
  run_.over.request_stop();
  open_gate();
  threads_.clear();
  return tl::unexpected(failed);
}

tl::expected<void, std::string> LiveRun::await_connected() {
  std::unique_lock lock(mutex_);
  const auto started = static_cast<int>(threads_.size());
  // Bounded: every client either connects or fails within the command timeout.
  while (connected_ < started && connect_error_.empty()) {
    changed_.wait_for(lock, kTick);
    const double done = static_cast<double>(connected_) / plan_.workload.clients;
    lock.unlock();
    report(Progress::Phase::connecting, done);
    lock.lock();
  }
  if (!connect_error_.empty()) return tl::unexpected(connect_error_);
  if (started < plan_.workload.clients)
    return tl::unexpected<std::string>("interrupted while connecting");
  return {};
}

void LiveRun::client_body(int number) {
  be_a_client_thread();
  Worker worker(run_, number);
  const StoreResult<void> connected = worker.connect();
  {
    const std::scoped_lock lock(mutex_);
    if (connected) {
      ++connected_;
      ++working_;
    } else if (connect_error_.empty()) {
      connect_error_ = connected.error().message;
    }
  }
  changed_.notify_one();
  if (!connected) return;
  gate_open_.wait(false);
  worker.work();
  {
    const std::scoped_lock lock(mutex_);
    --working_;
  }
  changed_.notify_one();
}

void LiveRun::open_gate() {
  gate_open_.store(true);
  gate_open_.notify_all();
}

void LiveRun::drain() {
  // Two commands under way, one after the other, each bounded by its own time-out.
  const TimePoint give_up_at = env_->now() + 2 * plan_.workload.strategy.command_timeout;
  {
    std::unique_lock lock(mutex_);
    while (working_ > 0 && env_->now() < give_up_at) changed_.wait_until(lock, give_up_at);
  }
  run_.abort.request_stop();
  threads_.clear();  // joins
}

}  // namespace lockbench::loadgen
