#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "loadgen/record/histogram.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

/// One client's waits for locks, in so little memory (5 KiB) that each client can have its own:
/// within 3 %. Only that client's thread records, without a lock; any thread may read.
class ClientWaits {
 public:
  using Layout = LogLinearLayout<4>;
  static constexpr std::size_t kBuckets = Layout::index(Layout::kHighest) + 1;

  /// `censored`: the wait was cut off, by a timeout or the end of the run. Above one hour it counts
  /// as one hour.
  void record(Duration wait, bool censored) noexcept;

 private:
  friend std::optional<results::ByClient> by_client(const std::vector<const ClientWaits*>& clients);

  std::array<std::atomic<std::uint32_t>, kBuckets> complete_{}, censored_{};
};

/// Percentiles over all clients, each of which weighs the same, and those of the worst. A client
/// without waits does not count; nothing if none has any.
std::optional<results::ByClient> by_client(const std::vector<const ClientWaits*>& clients);

}  // namespace lockbench::loadgen
