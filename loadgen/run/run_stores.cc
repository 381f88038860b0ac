#include "loadgen/run/run_stores.h"

#include <sys/resource.h>

#include <algorithm>

namespace lockbench::loadgen {
namespace {

/// Of this process so far.
double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto to_seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return to_seconds(usage.ru_utime) + to_seconds(usage.ru_stime);
}

/// Nothing unless both are there.
template <class T>
std::optional<T> difference(const std::optional<T>& later, const std::optional<T>& earlier) {
  if (!later || !earlier) return std::nullopt;
  return *later - *earlier;
}

}  // namespace

void RunStores::begin() {
  at_begin_.clear();
  for (const auto& store : stores_) at_begin_.push_back(store->facts());
}

RunStores::Usage RunStores::end() {
  Usage usage;
  double cpu_seconds = 0;
  bool complete = !stores_.empty();
  for (std::size_t i = 0; i < at_begin_.size(); ++i) {
    const StoreResult<StoreFacts>& before = at_begin_[i];
    if (!before) {  // no permission to ask
      complete = false;
      continue;
    }
    const StoreResult<StoreFacts> after = stores_[i]->facts();
    if (after && before->instance == after->instance) {
      complete = complete && after->cpu_seconds && before->cpu_seconds;
      cpu_seconds += after->cpu_seconds.value_or(0) - before->cpu_seconds.value_or(0);
      continue;
    }
    complete = false;
    if (after) {
      usage.restarts.push_back(stores_[i]->display() + " restarted during the run");
    } else {
      usage.gone.push_back(stores_[i]->display() + " did not answer after the run");
    }
  }
  if (complete) usage.cpu_seconds = cpu_seconds;
  return usage;
}

tl::expected<void, std::string> RunStores::remove(const RunKeys& keys,
                                                  const std::stop_token& stop) {
  // After a failure a server gets no more requests; the others are still cleaned.
  std::vector<bool> failed(stores_.size(), false);
  tl::expected<void, std::string> first_failure;
  const auto from_all = [&](auto&& removal) {
    for (std::size_t store = 0; store < stores_.size(); ++store) {
      if (failed[store]) continue;
      const StoreResult<std::size_t> removed = removal(*stores_[store]);
      failed[store] = !removed;
      if (!removed && first_failure) first_failure = tl::unexpected(removed.error().message);
    }
  };
  if (listing_ == Listing::by_prefix) {
    from_all([&](Store& store) { return store.remove_run(keys.run_id, stop); });
    return first_failure;
  }
  // Bounds memory: a run may have millions of keys.
  constexpr std::size_t kBatch = 10'000;
  std::vector<std::string> batch;
  const auto remove_batch = [&] {
    from_all([&](Store& store) { return store.remove_keys(batch, stop); });
    batch.clear();
  };
  keys.used.for_each([&](int key) {
    for (const std::string_view suffix : keys.suffixes)
      batch.push_back(keys.name_of(key) + std::string(suffix));
    if (batch.size() >= kBatch) remove_batch();
  });
  if (!batch.empty()) remove_batch();
  return first_failure;
}

void ResourceMeter::add_to(RunEvidence& evidence) const {
  evidence.cpu_seconds = at_end_.own_cpu - at_begin_.own_cpu;
  evidence.private_cpu_seconds = difference(at_end_.private_cpu, at_begin_.private_cpu);
  evidence.machine.cpu = difference(at_end_.machine.cpu, at_begin_.machine.cpu);
  evidence.machine.pressure_seconds =
      difference(at_end_.machine.pressure_seconds, at_begin_.machine.pressure_seconds);
  evidence.machine.throttled_seconds =
      difference(at_end_.machine.throttled_seconds, at_begin_.machine.throttled_seconds);
  for (std::size_t i = 0; i < at_end_.threads.size(); ++i) {
    evidence.busiest_thread_seconds =
        std::max(evidence.busiest_thread_seconds.value_or(0),
                 seconds(at_end_.threads[i] - at_begin_.threads.at(i)));
  }
}

std::optional<double> ResourceMeter::server_cpu_seconds() const {
  // A server that restarts counts from zero again.
  if (restarts_servers(plan_.faults)) return std::nullopt;
  return difference(when_drained_.servers_cpu, at_begin_.servers_cpu);
}

std::optional<std::uint64_t> ResourceMeter::bytes() const {
  if (!plan_.bytes_moved) return std::nullopt;
  return when_drained_.bytes - at_begin_.bytes;
}

ResourceMeter::Reading ResourceMeter::read() const {
  Reading reading{.own_cpu = own_cpu_seconds(), .machine = plan_.machine()};
  if (plan_.private_cpu.of) reading.servers_cpu = plan_.private_cpu.of(server_set(strategy_));
  if (plan_.bytes_moved) reading.bytes = plan_.bytes_moved();
  for (int i = 0; pool_ && i < pool_->threads(); ++i) reading.threads.push_back(pool_->cpu_time(i));
  // Other locks' servers run too.
  if (has_only_private_servers()) {
    reading.private_cpu = plan_.private_cpu.all ? plan_.private_cpu.all() : 0;
  }
  return reading;
}

bool ResourceMeter::is_private(std::string_view set) const {
  return plan_.private_cpu.of && plan_.private_cpu.of(set).has_value();
}

bool ResourceMeter::has_private_servers() const {
  const bool counts_there = plan_.workload.resource != Resource::memory;
  return is_private(server_set(strategy_)) || (counts_there && is_private("counter"));
}

bool ResourceMeter::has_only_private_servers() const {
  const bool counts_there = plan_.workload.resource != Resource::memory;
  return (urls_of(strategy_, plan_.endpoints).empty() || is_private(server_set(strategy_))) &&
         (!counts_there || is_private("counter"));
}

}  // namespace lockbench::loadgen
