#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "strategies/lease.h"

namespace lockbench::loadgen {

/// A lock that a section asks for.
struct Wanted {
  int key = 0;
  Mode mode = Mode::exclusive;
  bool operator==(const Wanted&) const = default;
};

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

  /// Reads all of the file. The error names the line, and what is wrong with it.
  static tl::expected<Trace, std::string> read(const std::string& path);

  bool operator==(const Trace&) const = default;
};

/// Reads a trace transaction by transaction. For one thread at a time.
class TraceReader {
 public:
  /// `lines` must outlive the reader; errors call it `name`.
  TraceReader(std::istream& lines, std::string name) : lines_(lines), name_(std::move(name)) {}

  /// The next transaction's locks, each once, in the order of the file. If one is asked for twice,
  /// it is exclusive if one of the two requests is. False at the end. The error names the line;
  /// nothing can be read after it.
  tl::expected<bool, std::string> next(std::vector<Wanted>& locks);

 private:
  struct Request {
    std::uint64_t transaction = 0;
    int lock = 0;
    Mode mode = Mode::exclusive;
  };
  tl::expected<std::optional<Request>, std::string> next_request();
  tl::expected<Request, std::string> parse(std::string_view text) const;
  tl::unexpected<std::string> wrong(std::string_view what) const;

  static constexpr std::size_t kLongestLine = 128;

  std::istream& lines_;
  const std::string name_;
  std::array<char, kLongestLine + 1> line_{};
  std::uint64_t number_ = 0;           ///< of the line
  std::optional<Request> read_ahead_;  ///< of the next transaction
};

}  // namespace lockbench::loadgen
