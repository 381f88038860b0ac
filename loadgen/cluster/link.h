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

/// What ranks tell each other.
enum class Kind : std::uint8_t {
  alive,  ///< now and then
  // To rank 0.
  hello,    ///< this rank is there: where it runs, of which build
  ready,    ///< its clients are connected, or why they are not
  started,  ///< it has heard when the load begins
  part,     ///< all that it recorded of a run
  // To all from rank 0.
  order,  ///< a run: connect its clients
  start,  ///< how soon the load begins
  stop,   ///< the command ends early
  over,   ///< the run
  leave,  ///< there are no more runs
  kinds,
};

struct Message {
  int from = 0;
  Kind kind = Kind::alive;
  std::string body;
};

/// What a rank sends at a time, at most, and what waits for one that does not take it.
inline constexpr std::size_t kMostBytes = std::size_t{256} << 20;

/// The other ranks of a run. Nothing here waits: a rank that dies never holds up another one. For
/// one thread, which made it.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends in order to each rank. What cannot be delivered, as the rank is gone or takes nothing,
  /// is dropped; memory for it is bounded.
  virtual void post(int to, Kind kind, std::string body) = 0;
  /// A message that has come, if any; none is longer than kMostBytes.
  virtual std::optional<Message> poll() = 0;
  /// For a bounded time, lets what was posted arrive. `together`: all ranks are known to do the
  /// same now.
  virtual void close(bool together) = 0;
};

/// What the launcher says of this process; nothing if there is none.
struct Launched {
  int rank = 0, size = 1;
};
/// From the environment alone, that of OpenMPI's mpirun and of Slurm's srun with PMIx.
std::optional<Launched> launched();

/// Joins the ranks of MPI, from the thread that will use them. The error says why that is not
/// possible, such as a build without MPI.
tl::expected<std::unique_ptr<Peers>, std::string> join_mpi();

/// Why this build has no MPI; empty if it has.
std::string without_mpi();
/// The library and its version.
std::string mpi_version();

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
