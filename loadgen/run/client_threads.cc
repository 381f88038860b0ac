#include "loadgen/run/client_threads.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "strategies/thread.h"

namespace lockbench::loadgen {
namespace {

class ThreadTask : public Task {
 public:
  explicit ThreadTask(Thread thread) : thread_(std::move(thread)) {}

 private:
  Thread thread_;
};

}  // namespace

tl::expected<ClientThreads, std::string> ClientThreads::of_fibers(int threads) {
  auto pool = fibers::Pool::make(threads);
  if (!pool) return tl::unexpected(pool.error());
  ClientThreads made;
  made.pool_ = *std::move(pool);
  return made;
}

tl::expected<std::unique_ptr<Task>, std::string> ClientThreads::start(
    int client, Carrier::Body body, Carrier::OnFailure on_failure) {
  if (pool_) return pool_->start(client, std::move(body), std::move(on_failure));
  Carrier& here = Carrier::current();
  if (here.shared()) return here.start(std::move(body), std::move(on_failure));
  auto thread = Thread::start(
      [body = std::move(body)](const std::stop_token& stop) {
        fibers::tune_client_thread();
        body(stop);
      },
      std::move(on_failure), Thread::Stack::small);
  if (!thread) return tl::unexpected(thread.error());
  return std::make_unique<ThreadTask>(*std::move(thread));
}

std::vector<Duration> ClientThreads::cpu_times() const {
  std::vector<Duration> times;
  if (!pool_) return times;
  times.reserve(static_cast<std::size_t>(pool_->threads()));
  for (int thread = 0; thread < pool_->threads(); ++thread) {
    times.push_back(pool_->cpu_time(thread));
  }
  return times;
}

std::optional<std::size_t> ClientThreads::stack_high_water_bytes() const {
  return pool_ ? std::optional(pool_->stack_high_water()) : std::nullopt;
}

std::string_view to_string(ClientsOn clients_on) {
  return clients_on == ClientsOn::fibers ? "fibers" : "threads";
}

int generator_threads(const Workload& workload, bool beside_servers) {
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int usual = std::max(1, beside_servers ? cores - 1 : cores);
  return std::min(workload.threads.value_or(usual), workload.clients);
}

}  // namespace lockbench::loadgen
