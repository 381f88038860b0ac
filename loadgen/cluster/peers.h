#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>

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

}  // namespace lockbench::loadgen::cluster
