#include "loadgen/run/run_stores.h"

namespace lockbench::loadgen {

void RunStores::begin() {
  at_begin_.clear();
  for (const auto& store : stores_) at_begin_.push_back(store->facts());
}

RunStores::Usage RunStores::end() {
  Usage usage;
  double cpu_seconds = 0;
  bool complete = !empty();
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

tl::expected<void, std::string> RunStores::remove_keys(
    int keys, const std::function<std::string(int)>& key_of,
    const std::vector<std::string_view>& suffixes) {
  // Bounds memory: a run may have millions of keys.
  constexpr std::size_t kBatch = 10'000;
  std::vector<std::string> batch;
  // After a failure a server gets no more requests; the others are still cleaned.
  std::vector<bool> failed(stores_.size(), false);
  tl::expected<void, std::string> first_failure;
  for (int key = 0; key < keys; ++key) {
    for (const std::string_view suffix : suffixes)
      batch.push_back(key_of(key) + std::string(suffix));
    if (batch.size() < kBatch && key + 1 < keys) continue;
    for (std::size_t store = 0; store < stores_.size(); ++store) {
      if (failed[store]) continue;
      const auto removed = stores_[store]->remove_keys(batch);
      failed[store] = !removed;
      if (!removed && first_failure) first_failure = tl::unexpected(removed.error().message);
    }
    batch.clear();
  }
  return first_failure;
}

tl::expected<void, std::string> RunStores::remove_run(std::string_view run_id) {
  for (const auto& store : stores_) {
    if (auto removed = store->remove_run(run_id); !removed) {
      return tl::unexpected(removed.error().message);
    }
  }
  return {};
}

}  // namespace lockbench::loadgen
