#include "loadgen/experiments/capacity_limit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "results/tables/units.h"

namespace lockbench::loadgen {
namespace {

using results::human_number;
using results::human_seconds;

// Utilisation from which a resource is a possible, a certain, and (for CPU and clients) the only
// limit.
constexpr double kBusy = 0.5, kSaturated = 0.8, kFull = 0.9;

double all(std::uint64_t count) { return static_cast<double>(count); }

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Utilisation of each resource that a section needs.
struct Shares {
  double lock = 0, store = 0, clients = 0, machine = 0;
  double store_of_machine = 0;
  bool store_known = true;
};

Shares shares_of(const LimitEvidence& evidence, const ServiceTimes& service) {
  const results::Run& run = evidence.run;
  const double rate = run.sections_per_second;
  Shares shares;
  if (evidence.lock.excludes) {
    shares.lock = std::min(1.0, rate * evidence.lock.busiest_key * service.taken());
  }
  const double server = server_cpu_share(run);
  shares.store_known = std::isfinite(server);
  if (shares.store_known) shares.store = server / evidence.store_cores;
  // Little (1961): busy clients = throughput × time that each section takes its client.
  const double taken = run.acquire_service.mean + run.hold.mean + run.release.mean;
  shares.clients = rate * taken / all(evidence.clients);
  const double generator = run.generator.cpu_share;
  shares.machine = run.generator.machine_cpu_share.value_or(
      generator + (shares.store_known ? server / evidence.cores : 0));
  shares.store_of_machine =
      shares.store_known ? server / evidence.cores : shares.machine - generator;
  return shares;
}

std::string lock_reason(const LimitEvidence& evidence, const ServiceTimes& service, double share) {
  const std::string handed =
      service.awaited_share > 0
          ? fmt::format(", and handoff {} after {} of the releases",
                        human_seconds(service.turnaround), percent(service.awaited_share))
          : "";
  return fmt::format(
      "with hold {}{}, at most {} sections/s are possible{}; {} were served, the lock was taken {} "
      "of the time",
      human_seconds(service.hold), handed,
      human_number(1 / (service.taken() * evidence.lock.busiest_key)),
      evidence.lock.busiest_key < 1 ? " over all keys" : " with one key",
      human_number(evidence.run.sections_per_second), percent(share));
}

/// Where the store and the generator are on this machine, they share its cores: the one that uses
/// more of them is the limit.
Limit full_machine(const LimitEvidence& evidence, const Shares& shares) {
  const double generator = evidence.run.generator.cpu_share;
  const bool store = shares.store_of_machine > generator;
  const std::string others =
      shares.store_known
          ? fmt::format("{} for {}", percent(shares.store_of_machine), evidence.store)
          : fmt::format("{} for other programs, {} perhaps among them",
                        percent(shares.store_of_machine), evidence.store);
  return {store ? "store" : "generator",
          fmt::format("this machine's CPU was busy {} of the time, {} and {} for the generator{}",
                      percent(shares.machine), others, percent(generator),
                      store ? "" : ": not the lock's own limit")};
}

}  // namespace

Limit name_limit(const LimitEvidence& evidence) {
  const results::Run& run = evidence.run;
  const ServiceTimes service = service_times({&run, 1});
  const Shares shares = shares_of(evidence, service);
  if (evidence.steps > 0 && 2 * evidence.invalid_steps >= evidence.steps) {
    return {"generator",
            fmt::format("{} of {} steps were not valid, so this is not the lock's own limit: {}",
                        evidence.invalid_steps, evidence.steps, evidence.invalid_reason)};
  }
  if (!evidence.step_valid) {
    return {"generator",
            fmt::format("not the lock's own limit: {}", fmt::join(run.generator.reasons, "; "))};
  }
  const std::string lock = lock_reason(evidence, service, shares.lock);
  const std::string store =
      fmt::format("the CPU of {} was busy {} of the time{}", evidence.store, percent(shares.store),
                  evidence.store_cores > 1 ? "" : ", on the one core that it uses");
  if (shares.lock >= kSaturated) return {"lock", lock};
  if (shares.store >= kSaturated) return {"store", store};
  if (shares.machine >= kFull) return full_machine(evidence, shares);
  if (const double thread = run.generator.busiest_thread_share.value_or(0); thread >= kFull) {
    return {"generator", fmt::format("a thread of the load generator was busy {} of the time, not "
                                     "the lock's own limit: more --threads could reach more",
                                     percent(thread))};
  }
  if (shares.clients >= kFull) {
    return {"clients", fmt::format("{} of {} clients were busy (Little: {} sections/s of {} each): "
                                   "more --clients could reach more",
                                   human_number(shares.clients * all(evidence.clients)),
                                   evidence.clients, human_number(run.sections_per_second),
                                   human_seconds(shares.clients * all(evidence.clients) /
                                                 run.sections_per_second))};
  }
  if (shares.lock >= kBusy && shares.lock > shares.store) return {"lock", lock};
  if (shares.store >= kBusy) return {"store", store};
  // An objective that allows hardly any waiting is missed long before the lock is fully utilised.
  // A client that finds the lock held waits, on average, for half a hold.
  const double one_wait = service.hold / 2 + service.turnaround;
  const bool waits = run.acquire.count > 0 && run.acquire.p99 >= one_wait;
  if (evidence.lock.excludes && waits && shares.lock >= std::max(0.01, shares.store)) {
    return {"lock",
            fmt::format("waiting for one other client takes {} on average, acquire p99 was {}; {}",
                        human_seconds(one_wait), human_seconds(run.acquire.p99), lock)};
  }
  const std::string store_cpu =
      shares.store_known ? "was busy " + percent(shares.store) : "is unknown";
  return {
      "unknown",
      fmt::format("the lock was taken {} of the time, the CPU of {} {}, clients {}, this machine "
                  "{}: none is near its limit",
                  percent(shares.lock), evidence.store, store_cpu, percent(shares.clients),
                  percent(shares.machine))};
}

}  // namespace lockbench::loadgen
