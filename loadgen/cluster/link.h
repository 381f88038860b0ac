#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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

#include "strategies/thread.h"

namespace lockbench::loadgen::cluster {

/// The kinds of messages between ranks.
enum class Kind : std::uint8_t {
  alive,  ///< sent at intervals
  // To rank 0.
  hello,    ///< this rank is there: its host and build
  ready,    ///< its clients are connected, or why they are not
  started,  ///< it knows when the load begins
  part,     ///< all its records of a run
  // To all from rank 0.
  order,  ///< connect the clients of a run
  start,  ///< how soon the load begins
  stop,   ///< the command ends early
  over,   ///< the run has ended
  leave,  ///< all runs are over
  kinds,
};

struct Message {
  int from = 0;
  Kind kind = Kind::alive;
  std::string body;
};

/// Bounds one message, and the messages that wait for a rank that does not take them.
inline constexpr std::size_t kMostBytes = std::size_t{256} << 20;

/// The other ranks of a run. Never waits, so that a dead rank does not hold up the others. Only for
/// the thread that made it.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends in order to each rank. Drops messages to a rank that is gone or takes nothing. Their
  /// memory is bounded: a body that does not fit is left out, and the message arrives empty.
  virtual void post(int to, Kind kind, std::string body) = 0;
  /// A received message, if any; at most kMostBytes long.
  virtual std::optional<Message> poll() = 0;
  /// Waits a bounded time for posted messages to arrive. `together`: all ranks are known to do the
  /// same now.
  virtual void close(bool together) = 0;
};

/// This process's place among those of a launcher.
struct Launched {
  int rank = 0, size = 1;
};
/// From the environment, as set by OpenMPI's mpirun, or by Slurm's srun with PMIx; nothing without
/// a launcher.
std::optional<Launched> launched();

/// Joins the ranks of MPI, from the thread that will use them. The error says why that is not
/// possible, such as a build without MPI.
tl::expected<std::unique_ptr<Peers>, std::string> join_mpi();

/// Why this build has no MPI; empty if it has.
std::string without_mpi();
/// The library and its version.
std::string mpi_version();

/// Carries a rank's messages. Only its own thread uses the Peers, so rank 0 and the others hear
/// from each other even while they are busy. Thread-safe, but one thread at a time may wait for
/// messages.
class Link {
 public:
  using Open = std::function<tl::expected<std::unique_ptr<Peers>, std::string>()>;
  using Now = std::function<TimePoint()>;

  /// `open` runs on that thread and may take long: it returns when all ranks are there.
  static tl::expected<std::unique_ptr<Link>, std::string> make(const Open& open,
                                                               Now now = BootClock::now);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  int rank() const { return rank_; }
  int size() const { return size_; }
  TimePoint now() const { return now_(); }

  void send(int to, Kind kind, std::string body = {});
  void send_to_others(Kind kind, const std::string& body = {});
  /// The next message; nothing if none comes by `until` or before a stop. Its body is left out if
  /// it does not fit beside those that have not been taken.
  std::optional<Message> next(TimePoint until, const std::stop_token& stop = {});

  /// When this rank was last heard from. A rank other than 0 knows only rank 0's time and its own.
  TimePoint heard_at(int rank) const { return heard_at_.at(static_cast<std::size_t>(rank)); }
  /// Requested by a message of rank 0, or in this process.
  std::stop_source& stop() { return stop_; }

  /// Waits a bounded time for sent messages to arrive, and ends the thread. `together`: all ranks
  /// do so now.
  void close(bool together);

 private:
  explicit Link(Now now) : now_(std::move(now)) {}
  void work(const std::stop_token& stop);
  void flush();
  /// Takes received messages. True if there may be more.
  bool take_all();
  void take(Message message);

  const Now now_;
  int rank_ = 0, size_ = 1;
  std::unique_ptr<Peers> peers_;  ///< of the thread
  std::vector<std::atomic<TimePoint>> heard_at_;
  std::stop_source stop_;

  std::mutex mutex_;  ///< guards the members below
  std::condition_variable_any filled_, to_send_;
  std::deque<Message> arrived_;
  std::size_t arrived_bytes_ = 0;
  std::deque<std::pair<int, Message>> outgoing_;
  bool awaited_ = false;  ///< a thread waits for a message

  std::atomic<bool> together_{false};
  Thread thread_;
};

}  // namespace lockbench::loadgen::cluster
