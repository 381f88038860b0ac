#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "history/operation.h"
#include "strategies/thread.h"

namespace lockbench::history {

/// Writes the history of locks to a file while clients work. Thread-safe; never waits for the disk.
class Log {
 public:
  /// Replaces the file. The error names it.
  static tl::expected<std::unique_ptr<Log>, std::string> open(const std::string& path);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  /// Writes the rest. The error says why the file is not the whole history: a full disk, or one too
  /// slow for the load. Call once, after the end of each Process.
  tl::expected<void, std::string> close();

 private:
  friend class Process;

  Log(std::string path, Form form, int file) : path_(std::move(path)), form_(form), file_(file) {}
  void write_out(const std::stop_token& stop);
  void fail(const std::string& why);
  // Under the mutex:
  /// Each is later than the one before, so that times and lines have one order.
  std::int64_t stamp(TimePoint now);
  void append(std::string_view line);

  const std::string path_;
  const Form form_;
  const int file_;

  std::mutex mutex_;  ///< of all below
  std::condition_variable_any filled_;
  std::string buffer_;
  std::string failure_;  ///< nothing is written after the first one
  std::optional<TimePoint> origin_;
  std::int64_t last_ = -1, lines_ = 0;
  int processes_ = 0;

  Thread thread_;  ///< last: uses all above
};

/// A process of the history: it carries out one operation after the other. As in Jepsen, its number
/// is not used again after an indefinite one. Not thread-safe. Without a log it does nothing.
class Process {
 public:
  explicit Process(Log* log) : log_(log) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  /// Leaves an operation open that has not ended.
  ~Process();

  bool open() const { return open_; }  ///< an operation is under way
  /// Call right before the request. An operation that is still open stays so.
  void acquire(std::string_view key, bool shared, TimePoint now);
  /// Of `key`, or if empty of the lock that it acquired last. Goes on with an open release.
  void release(TimePoint now, std::string_view key = {});
  /// Call right after the answer. A release that finds the lock no longer its own is ok.
  void end(Outcome outcome, TimePoint now, std::optional<std::uint64_t> value = {});

 private:
  void begin(Function f, std::string_view key, TimePoint now);
  /// In EDN an event, else the whole operation.
  void write(std::string_view type, std::int64_t time, std::optional<std::uint64_t> value = {});

  Log* const log_;
  int number_ = -1;  ///< none yet
  bool open_ = false;
  Function f_ = Function::acquire;
  std::string key_;
  std::int64_t begun_ = 0;
};

}  // namespace lockbench::history
