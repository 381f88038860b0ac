#include "loadgen/run/run_stores.h"

#include <algorithm>

namespace lockbench::loadgen {

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
    return std::find(failed.begin(), failed.end(), false) != failed.end();
  };
  if (listing_ == Listing::by_prefix) {
    from_all([&](Store& store) { return store.remove_run(keys.run_id, stop); });
    return first_failure;
  }
  // Bounds memory: a run may have millions of keys.
  constexpr std::size_t kBatch = 10'000;
  std::vector<std::string> batch;
  const auto remove_batch = [&] {
    const bool go_on = from_all([&](Store& store) { return store.remove_keys(batch, stop); });
    batch.clear();
    return go_on;
  };
  keys.used.for_each([&](int key) {
    for (const std::string_view suffix : keys.suffixes)
      batch.push_back(keys.name_of(key) + std::string(suffix));
    return batch.size() < kBatch || remove_batch();
  });
  if (!batch.empty()) remove_batch();
  return first_failure;
}

}  // namespace lockbench::loadgen
