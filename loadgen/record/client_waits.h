#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "loadgen/record/atomics.h"
#include "loadgen/record/histogram.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

/// The waits for locks of each client, within 3 %. Each client's thread records its own, without a
/// lock; any thread may read. A client has 5 KiB of buckets, of which those that it uses take
/// memory: the buckets of one power of two lie side by side for all clients, which wait alike.
class ClientWaits {
 public:
  explicit ClientWaits(int clients);

  /// `censored`: the wait was cut off, by a timeout or the end of the run. Above one hour it counts
  /// as one hour.
  void record(int client, Duration wait, bool censored) noexcept;

  /// Waits of about the same length.
  struct Bucket {
    std::uint32_t index = 0;
    bool censored = false;
    std::uint32_t waits = 0;
  };
  /// Those of this client that hold some.
  std::vector<Bucket> buckets_of(int client) const;
  /// Adds waits that were recorded elsewhere, on the thread that records the client's. Ignores a
  /// bucket that there is not.
  void add(int client, const Bucket& more) noexcept;

  /// Percentiles over all clients, each of which weighs the same, and those of the worst. A client
  /// without waits does not count; nothing if none has any.
  std::optional<results::ByClient> by_client() const;

 private:
  using Layout = LogLinearLayout<4>;
  static constexpr std::size_t kBuckets = Layout::index(Layout::kHighest) + 1;
  static constexpr std::size_t kRowBuckets = Layout::kSubBuckets;
  static constexpr std::size_t kRows = (kBuckets + kRowBuckets - 1) / kRowBuckets;

  /// A client's buckets of one power of two.
  using Row = std::array<std::atomic<std::uint32_t>, kRowBuckets>;
  static_assert(sizeof(Row) == kCacheLine);
  struct Unmap {
    std::size_t bytes;
    void operator()(Row* rows) const;
  };
  using Rows = std::unique_ptr<Row[], Unmap>;  // NOLINT(modernize-avoid-c-arrays): zero pages

  static Rows make_rows(int clients);
  std::atomic<std::uint32_t>& bucket(int client, std::size_t index, bool censored) const;

  const int clients_;
  Rows rows_;
};

}  // namespace lockbench::loadgen
