#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "loadgen/cluster/peers.h"
#include "strategies/thread.h"

namespace lockbench::loadgen::cluster {

/// Carries a rank's messages, on a thread of its own that alone uses the Peers: so rank 0 and the
/// others hear of each other whatever else they do. Thread-safe, but one thread at a time may wait
/// for messages.
class Link {
 public:
  using Open = std::function<tl::expected<std::unique_ptr<Peers>, std::string>()>;
  using Now = std::function<TimePoint()>;

  /// `open` is called on the thread, which is why it may take long: it ends when all ranks are
  /// there.
  static tl::expected<std::unique_ptr<Link>, std::string> make(const Open& open,
                                                               Now now = BootClock::now);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  int rank() const { return rank_; }
  int size() const { return size_; }
  TimePoint now() const { return now_(); }

  void send(int to, Kind kind, std::string body = {});
  /// To all ranks but this one.
  void send_to_others(Kind kind, const std::string& body = {});
  /// The next message. Waits until then; a stop ends the wait.
  std::optional<Message> next(TimePoint until, const std::stop_token& stop = {});

  /// When this rank was last heard of. Only those of rank 0 and its own are known to other ranks.
  TimePoint heard_at(int rank) const { return heard_at_.at(static_cast<std::size_t>(rank)); }
  /// Requested when rank 0 says so, or by others here.
  std::stop_source& stop() { return stop_; }

  /// Lets what was sent arrive, for a bounded time, and ends the thread. `together`: all ranks do.
  void close(bool together);

 private:
  explicit Link(Now now) : now_(std::move(now)) {}
  void work(const std::stop_token& stop);
  void flush();
  /// Takes what has come. Whether there may be more.
  bool take_all();
  void take(Message message);

  const Now now_;
  int rank_ = 0, size_ = 1;
  std::unique_ptr<Peers> peers_;  ///< of the thread
  std::vector<std::atomic<TimePoint>> heard_at_;
  std::stop_source stop_;

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable_any filled_, to_send_;
  std::deque<Message> arrived_;
  std::size_t arrived_bytes_ = 0;
  std::deque<std::pair<int, Message>> outgoing_;
  bool awaited_ = false;  ///< somebody waits for a message

  std::atomic<bool> together_{false};
  Thread thread_;
};

}  // namespace lockbench::loadgen::cluster
