#include "loadgen/run/setup.h"

#include <fmt/format.h>

#include <random>

#include "loadgen/record/redis_counter.h"
#include "loadgen/run/client_threads.h"
#include "loadgen/run/service_recording.h"
#include "strategies/redis/client/shared_connections.h"

namespace lockbench::loadgen {

std::uint64_t random_nonce() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

int nodes_of_quorum(const Descriptor& strategy, const Endpoints& endpoints) {
  if (strategy.traits.nodes <= 1) return 0;
  return static_cast<int>(urls_of(strategy, endpoints).size());
}

RunShared make_run(const RunPlan& plan, const Descriptor& strategy, int repetition, int number,
                   const Share& share, Env& env) {
  return {.strategy = strategy,
          .workload = plan.workload,
          .endpoints = plan.endpoints,
          .key_prefix = fmt::format("lockbench:{}:{{{}:{}:", plan.run_id, strategy.name, number),
          .nonce = env.random(),
          .seed = plan.workload.seed + static_cast<std::uint64_t>(repetition) - 1,
          .make_env = plan.make_env,
          .recorder = Recorder(plan.workload.clients, nodes_of_quorum(strategy, plan.endpoints)),
          .services = {},
          .audit = Audit(plan.workload.key_count()),
          .handoff = HandoffTracker(plan.workload.key_count()),
          .used = UsedKeys(plan.workload.key_count() + plan.workload.clients),
          .demand = nullptr,
          .counter = nullptr,
          .schedule = nullptr,
          .share = share};
}

tl::expected<void, std::string> equip(const RunPlan& plan, bool beside_servers, RunShared& run) {
  if (plan.workload.meet_every) {
    run.meetings = std::make_unique<Meetings>(plan.workload.key_count(), *plan.workload.meet_every);
  }
  if (plan.workload.has_transactions() && plan.workload.lock_order == LockOrder::drawn) {
    run.waits = std::make_unique<WaitGraph>(plan.workload.clients, run.strategy.traits.fair);
  }
  record_services(run);
  if (const auto connections = plan.workload.connections) {
    const int threads = generator_threads(plan.workload, beside_servers);
    run.services.provide<redis::ConnectionFactory>(
        redis::make_sharing_factory({.connections = *connections, .threads = threads}));
  }
  if (plan.provide_services) plan.provide_services(run.services);
  auto demand = make_demand(plan.workload, run.share);
  if (!demand) return tl::unexpected(demand.error());
  run.demand = *std::move(demand);
  return {};
}

tl::expected<void, std::string> make_counter(const RunPlan& plan, Env& env, RunShared& run) {
  const Workload& workload = plan.workload;
  if (workload.resource == Resource::memory) {
    run.counter = make_memory_counter(workload.key_count());
    return {};
  }
  const auto endpoint = redis::parse_endpoint(plan.counter_url);
  if (!endpoint) return tl::unexpected(endpoint.error());
  auto counter =
      make_redis_counter({.connections = run.services.get_or_make<redis::ConnectionFactory>(
                              redis::make_hiredis_factory),
                          .endpoint = *endpoint,
                          .command_timeout = workload.strategy.command_timeout,
                          .env = env,
                          .keys = workload.key_count(),
                          .key_name = [&run](int key) { return run.key(key) + ":counter"; },
                          .checks_fencing = workload.resource == Resource::redis_fenced,
                          .kept_for = kKeptFor + workload.warmup + workload.duration});
  if (!counter) return tl::unexpected(counter.error());
  run.counter = std::move(*counter);
  return {};
}

}  // namespace lockbench::loadgen
