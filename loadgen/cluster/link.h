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
#include <vector>

#include "loadgen/cluster/clock.h"
#include "loadgen/cluster/peers.h"
#include "strategies/thread.h"

namespace lockbench::loadgen::cluster {

/// Whom a rank asks for the time: in a tree of which rank 0 is the root, so that none answers more
/// than log2 of the ranks, and each is at most that far from the root.
int parent_of(int rank);

/// Carries a rank's messages, on a thread of its own that alone uses the Peers, and keeps the
/// rank's clock model. Rank 0 is a member, too: what it sends to itself does not leave the process.
/// Thread-safe, but each box has one reader.
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

  void send(int to, Kind kind, std::string body = {});
  void send_to_all(Kind kind, const std::string& body = {});

  /// The next message for rank 0, or for this rank as a member. Waits until then; a stop ends the
  /// wait.
  std::optional<Message> for_root(TimePoint until, const std::stop_token& stop = {});
  std::optional<Message> for_member(TimePoint until, const std::stop_token& stop = {});

  /// How far rank 0's clock is ahead of this rank's.
  ClockModel clock() const;
  TimePoint now() const { return now_(); }
  /// When rank 0 was last heard of.
  TimePoint root_heard_at() const { return root_heard_at_.load(); }

  /// Lets what was sent arrive, for a bounded time, and ends the thread. `together`: all ranks do.
  void close(bool together);

 private:
  struct Box {
    std::mutex mutex;
    std::condition_variable_any filled;
    std::deque<Message> messages;
  };

  explicit Link(Now now) : now_(std::move(now)) {}
  void work(const std::stop_token& stop);
  void flush();
  /// Takes what has come. Whether there was anything.
  bool take_all();
  void take(Message message);
  /// Asks the parent for the time, a few times in a row.
  void ask_for_time();
  bool ask_once(TimePoint give_up_at, bool patient);
  static void deliver(Box& box, Message message);
  static std::optional<Message> next(Box& box, TimePoint until, const std::stop_token& stop);

  const Now now_;
  int rank_ = 0, size_ = 1;
  std::unique_ptr<Peers> peers_;  ///< of the thread
  TimePoint attentive_until_{};   ///< somebody asks for the time
  TimePoint asked_{};
  std::int64_t question_ = 0, answer_ = 0;

  std::atomic<TimePoint> root_heard_at_{};
  Box root_, member_;
  std::mutex outgoing_mutex_;
  std::condition_variable_any to_send_;
  std::deque<std::pair<int, Message>> outgoing_;
  mutable std::mutex clock_mutex_;
  ClockModel clock_;
  std::atomic<bool> together_{false};
  Thread thread_;
};

}  // namespace lockbench::loadgen::cluster
