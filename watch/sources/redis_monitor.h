#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "strategies/redis/client/feed.h"
#include "watch/sources/redis_book.h"

namespace lockbench::watch {

/// What MONITOR shows of locks: attempts that were refused, and holders that come back after their
/// lock had expired. Plain data.
class MonitorView {
 public:
  /// A window opens. What happened since the last one was not seen.
  void open() { held_.clear(); }
  void take(const MonitoredCommand& command, const RedisBook& book);
  /// The holder with this token lost the lock by its expiry.
  void expired(const std::string& key, const std::string& owner);

  struct Found {
    std::uint64_t refused = 0;
    bool overran = false;
  };
  /// By key, since the last call.
  std::map<std::string, Found> take_found() { return std::exchange(found_, {}); }

 private:
  std::map<std::string, bool> held_;            ///< as the commands of this window show
  std::map<std::string, std::string> expired_;  ///< the owner whose lock has expired, by key
  std::map<std::string, Found> found_;
};

/// MONITOR in short windows, of a tenth of the time, as it halves the throughput of a busy server.
/// For one thread.
class RedisMonitor {
 public:
  RedisMonitor(redis::Endpoint endpoint, Duration window, Duration command_timeout, Env& env)
      : feed_(std::move(endpoint), command_timeout, env), window_(window), env_(env) {}

  /// Opens and closes windows as it is time, and takes what has come. The error says that the
  /// server does not allow it.
  StoreResult<void> step(const std::vector<std::string>& patterns, const RedisBook& book,
                         const std::stop_token& stop);
  MonitorView& view() { return view_; }

 private:
  /// Ends the window, or what was to be one.
  void close();

  redis::Feed feed_;
  const Duration window_;
  Env& env_;
  bool open_ = false;
  TimePoint turns_at_{};
  MonitorView view_;
};

}  // namespace lockbench::watch
