#include "loadgen/record/counter.h"

#include <utility>

namespace lockbench::loadgen {
namespace {

using std::memory_order_relaxed;

std::uint64_t excess(std::uint64_t writes, std::uint64_t moved) {
  return writes > moved ? writes - moved : 0;
}

class MemorySession : public CounterSession {
 public:
  explicit MemorySession(PerKey<KeyWrites>& keys) : keys_(keys) {}

  tl::expected<Reading, std::string> read(int key, std::optional<std::uint64_t>) override {
    return Reading{.value = keys_[key].value.load(memory_order_relaxed)};
  }

  WriteResult write(int key, const Reading& reading, std::optional<std::uint64_t>) override {
    KeyWrites& writes = keys_[key];
    writes.value.store(reading.value + 1, memory_order_relaxed);
    return writes.note(WriteResult::accepted);
  }

 private:
  PerKey<KeyWrites>& keys_;
};

class MemoryCounter : public Counter {
 public:
  using Counter::Counter;

  std::unique_ptr<CounterSession> open(Env&) override {
    return std::make_unique<MemorySession>(keys_);
  }

  tl::expected<CounterTotals, std::string> totals() override {
    CounterTotals totals;
    keys_.for_each([&](int, const KeyWrites& writes) {
      writes.add_to(totals, writes.value.load(memory_order_relaxed));
    });
    return totals;
  }
};

class UpdatedCounter : public MemoryCounter {
 public:
  using Read = std::function<tl::expected<std::uint64_t, std::string>(int key)>;
  UpdatedCounter(int keys, Read read) : MemoryCounter(keys), read_(std::move(read)) {}

  tl::expected<CounterTotals, std::string> totals() override {
    CounterTotals totals;
    std::string failure;
    keys_.for_each([&](int key, const KeyWrites& writes) {
      if (!failure.empty()) return;
      const auto number = read_(key);
      if (!number) failure = number.error();
      writes.add_to(totals, number.value_or(0));
    });
    if (!failure.empty()) return tl::unexpected(failure);
    return totals;
  }

 private:
  const Read read_;
};

class ReportedCounter : public Counter {
 public:
  using Counter::Counter;

  std::unique_ptr<CounterSession> open(Env&) override { return nullptr; }

  tl::expected<CounterTotals, std::string> totals() override {
    CounterTotals totals;
    keys_.for_each([&](int, const KeyWrites& writes) {
      const std::uint64_t initial = writes.value.load(memory_order_relaxed);
      const std::uint64_t highest = writes.highest.load(memory_order_relaxed);
      writes.add_to(totals, initial == 0 ? 0 : excess(highest + 1, initial));
    });
    return totals;
  }
};

}  // namespace

std::vector<CounterTally> Counter::tallies() const {
  std::vector<CounterTally> found;
  keys_.for_each([&](int key, const KeyWrites& writes) {
    const CounterTally tally = writes.tally(key);
    if (tally != CounterTally{.key = key}) found.push_back(tally);
  });
  return found;
}

CounterTally KeyWrites::tally(int key) const noexcept {
  return {.key = key,
          .accepted = accepted.load(memory_order_relaxed),
          .rejected_stale = rejected_stale.load(memory_order_relaxed),
          .unknown = unknown.load(memory_order_relaxed),
          .initial = value.load(memory_order_relaxed),
          .highest = highest.load(memory_order_relaxed),
          .stored = stored.load(memory_order_relaxed)};
}

void KeyWrites::add(const CounterTally& tally) noexcept {
  accepted.fetch_add(tally.accepted, memory_order_relaxed);
  rejected_stale.fetch_add(tally.rejected_stale, memory_order_relaxed);
  unknown.fetch_add(tally.unknown, memory_order_relaxed);
  if (tally.stored) stored.store(true, memory_order_relaxed);
  std::uint64_t seen = value.load(memory_order_relaxed);
  while (tally.initial != 0 && (seen == 0 || tally.initial < seen) &&
         !value.compare_exchange_weak(seen, tally.initial, memory_order_relaxed)) {
  }
  raise_to(highest, tally.highest);
}

std::unique_ptr<Counter> make_updated_counter(
    int keys, std::function<tl::expected<std::uint64_t, std::string>(int key)> read) {
  return std::make_unique<UpdatedCounter>(keys, std::move(read));
}

std::unique_ptr<Counter> make_reported_counter(int keys) {
  return std::make_unique<ReportedCounter>(keys);
}

WriteResult KeyWrites::note(WriteResult result) noexcept {
  if (result == WriteResult::failed) return result;
  auto& count = result == WriteResult::accepted  ? accepted
                : result == WriteResult::unknown ? unknown
                                                 : rejected_stale;
  count.fetch_add(1, memory_order_relaxed);
  return result;
}

void KeyWrites::add_to(CounterTotals& totals, std::uint64_t moved) const noexcept {
  const std::uint64_t sure = accepted.load(memory_order_relaxed);
  const std::uint64_t perhaps = unknown.load(memory_order_relaxed);
  totals.accepted += sure;
  totals.rejected_stale += rejected_stale.load(memory_order_relaxed);
  totals.moved += moved;
  totals.lost += excess(sure, moved);
  totals.lost_max += excess(sure + perhaps, moved);
}

std::unique_ptr<Counter> make_memory_counter(int keys) {
  return std::make_unique<MemoryCounter>(keys);
}

}  // namespace lockbench::loadgen
