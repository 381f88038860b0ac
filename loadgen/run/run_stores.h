#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/store.h"

namespace lockbench::loadgen {

/// Which keys of a run were used, so that no others are removed at its end. Thread-safe.
class UsedKeys {
 public:
  explicit UsedKeys(int keys) : words_((static_cast<std::size_t>(keys) + kBits - 1) / kBits) {}

  void mark(int key) noexcept {
    std::atomic<std::uint64_t>& word = words_[static_cast<std::size_t>(key) / kBits];
    // Mostly it is set: then nothing is written to memory that clients share.
    if ((word.load(std::memory_order_relaxed) & bit_of(key)) != 0) return;
    word.fetch_or(bit_of(key), std::memory_order_relaxed);
  }

  /// In ascending order. `visit` returns whether to go on.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      std::uint64_t word = words_[i].load(std::memory_order_relaxed);
      for (; word != 0; word &= word - 1) {
        const auto bit = static_cast<std::size_t>(std::countr_zero(word));
        if (!visit(static_cast<int>(i * kBits + bit))) return;
      }
    }
  }

  bool none() const {
    bool found = false;
    for_each([&](int) {
      found = true;
      return false;
    });
    return !found;
  }

 private:
  static constexpr std::size_t kBits = 64;
  static std::uint64_t bit_of(int key) {
    return std::uint64_t{1} << (static_cast<std::size_t>(key) % kBits);
  }

  std::vector<std::atomic<std::uint64_t>> words_;
};

/// What the locks of a run may have left in its stores.
struct RunKeys {
  std::string_view run_id;
  const UsedKeys& used;
  std::function<std::string(int)> name_of;
  const std::vector<std::string_view>& suffixes;  ///< of each key
};

/// The servers of a run, apart from its locks: their CPU time, their restarts, and removing the
/// run's keys. For one thread at a time.
class RunStores {
 public:
  RunStores(std::vector<std::unique_ptr<Store>> stores, Listing listing)
      : stores_(std::move(stores)), listing_(listing) {}

  /// Reads the servers' figures when the load begins.
  void begin();

  struct Usage {
    std::optional<double> cpu_seconds;  ///< nothing if a server does not report it, or restarted
    std::vector<std::string> restarts;  ///< a line for each server that restarted
    std::vector<std::string> gone;      ///< a line for each server that no longer answers
  };
  /// The difference since begin().
  Usage end();

  /// Removes them from all servers: by the run's id where they stand together, otherwise the used
  /// ones by their names. A stop ends it after the batch under way.
  tl::expected<void, std::string> remove(const RunKeys& keys, const std::stop_token& stop);

 private:
  std::vector<std::unique_ptr<Store>> stores_;
  const Listing listing_;
  std::vector<StoreResult<StoreFacts>> at_begin_;
};

/// A stop that comes with another one, or after some time. Where nothing can run beside the caller
/// it comes with the other one only.
class StopAfter {
 public:
  StopAfter(Duration time, const std::stop_token& other) : on_other_(other, Request{stop_}) {
    auto timer = Carrier::current().start(
        [stop = stop_, time](const std::stop_token& over) mutable {
          Carrier& carrier = Carrier::current();
          carrier.wait(nullptr, carrier.now() + time, over);
          stop.request_stop();
        },
        [](const std::string& /*why*/) {});
    if (timer) timer_ = *std::move(timer);
  }

  std::stop_token token() const { return stop_.get_token(); }

 private:
  struct Request {
    std::stop_source stop;
    void operator()() { stop.request_stop(); }
  };

  std::stop_source stop_;
  std::stop_callback<Request> on_other_;
  std::unique_ptr<Task> timer_;
};

}  // namespace lockbench::loadgen
