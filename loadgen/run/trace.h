#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/lease.h"

namespace lockbench::loadgen {

/// A lock that a section asks for.
struct Wanted {
  int key = 0;
  Mode mode = Mode::exclusive;
  bool operator==(const Wanted&) const = default;
};

struct TraceLocks;

/// A file of lock requests, in the format of FissLock (Zhang et al., OSDI 2024), which ShiftLock
/// (FAST 2025) reads too. A line for each request:
///
///   transaction,task,type,lock,mode
///
/// all whole numbers. Lines of one transaction follow one another. `task` is 0: the request is for
/// a lock. `type` is the transaction's. `mode` is 1 for shared and 2 for exclusive. The task may be
/// missing. Empty lines and those that begin with # are skipped.
struct Trace {
  /// Locks are numbered from 0 to below this.
  static constexpr int kMostKeys = 1 << 24;
  static constexpr std::size_t kMostLocks = 1024;  ///< of a transaction

  std::string path;
  int keys = 0;  ///< the highest lock's number plus 1
  std::uint64_t transactions = 0;

  /// Reads all of the file, and into `locks` what its transactions ask for. The error names the
  /// line, and what is wrong with it.
  static tl::expected<Trace, std::string> read(const std::string& path,
                                               TraceLocks* locks = nullptr);

  bool operator==(const Trace&) const = default;
};

/// The locks of all transactions in their order, each lock once for a transaction.
struct TraceLocks {
  std::vector<Wanted> locks;
  std::vector<std::size_t> ends;  ///< of each transaction's among them

  std::span<const Wanted> of(std::size_t transaction) const {
    const std::size_t begin = transaction == 0 ? 0 : ends[transaction - 1];
    return std::span(locks).subspan(begin, ends[transaction] - begin);
  }
};

/// If a transaction asks for a lock twice, it is exclusive if one of the two requests is. The error
/// calls the file `name`, and says which line is wrong.
tl::expected<TraceLocks, std::string> read_trace(std::istream& lines, std::string_view name);

}  // namespace lockbench::loadgen
