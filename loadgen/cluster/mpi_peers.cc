// Without the C++ bindings, which the standard has dropped.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <thread>
#include <vector>

#include "loadgen/cluster/link.h"

namespace lockbench::loadgen::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kGone = std::chrono::seconds(20);
constexpr auto kClosing = std::chrono::seconds(2);

/// Calls return errors instead of aborting; dead ranks cause them.
bool done(int code) { return code == MPI_SUCCESS; }

class MpiPeers : public Peers {
 public:
  MpiPeers() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    peers_.resize(static_cast<std::size_t>(size_));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  // Requests are completed by MPI_Test later on, which the checker does not follow.
  // NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
  void post(int to, Kind kind, std::string body) override {
    Peer& peer = peers_.at(static_cast<std::size_t>(to));
    collect();
    if (peer.gone) return;
    if (peer.waiting + body.size() > kMostBytes) body.clear();
    // A list, as the library keeps the address until it has sent.
    Outgoing& out =
        outgoing_.emplace_back(Outgoing{to, std::move(body), MPI_REQUEST_NULL, Clock::now()});
    peer.waiting += out.body.size();
    const int sent = MPI_Isend(out.body.data(), static_cast<int>(out.body.size()), MPI_BYTE, to,
                               static_cast<int>(kind), MPI_COMM_WORLD, &out.request);
    if (done(sent)) return;
    peer.gone = true;
    peer.waiting -= out.body.size();
    outgoing_.pop_back();
  }

  std::optional<Message> poll() override {
    collect();
    while (true) {
      if (auto message = take_arrived()) return message;
      if (!look()) return std::nullopt;
    }
  }

  void close(bool together) override {
    const auto until = Clock::now() + kClosing;
    while (!outgoing_.empty() && Clock::now() < until) {
      collect();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    // MPI_Finalize() waits for all ranks, and for ever for a dead one.
    if (together && outgoing_.empty()) MPI_Finalize();
  }

 private:
  struct Peer {
    bool gone = false;
    std::size_t waiting = 0;  ///< bytes
  };
  struct Outgoing {
    int to;
    std::string body;
    MPI_Request request;
    Clock::time_point since;
  };
  struct Incoming {
    Message message;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  /// Forgets sent messages. Gives up a rank that has taken nothing for long.
  void collect() {
    if (outgoing_.empty()) return;
    const auto now = Clock::now();
    for (auto one = outgoing_.begin(); one != outgoing_.end();) {
      Peer& peer = peers_.at(static_cast<std::size_t>(one->to));
      int sent = 0;
      const bool failed = !done(MPI_Test(&one->request, &sent, MPI_STATUS_IGNORE));
      if (failed || now - one->since > kGone) peer.gone = true;
      if (failed || sent != 0) {
        peer.waiting -= one->body.size();
        one = outgoing_.erase(one);
      } else if (peer.gone) {
        // The library still has its address.
        abandoned_.splice(abandoned_.end(), outgoing_, one++);
      } else {
        ++one;
      }
    }
  }

  /// Keeps the order of each rank's messages. A rank that died while sending does not hold up
  /// others.
  std::optional<Message> take_arrived() {
    for (auto one = incoming_.begin(); one != incoming_.end();) {
      const bool follows = std::any_of(incoming_.begin(), one, [&](const Incoming& earlier) {
        return earlier.message.from == one->message.from;
      });
      int arrived = 0;
      const bool failed = !follows && !done(MPI_Test(&one->request, &arrived, MPI_STATUS_IGNORE));
      if (!failed && arrived == 0) {
        ++one;
        continue;
      }
      Message message = std::move(one->message);
      one = incoming_.erase(one);
      if (!failed) return message;
    }
    return std::nullopt;
  }

  /// Begins to receive a message that has arrived. False if there is none.
  bool look() {
    int found = 0;
    MPI_Status status;
    if (!done(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status)) ||
        found == 0) {
      return false;
    }
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    Incoming& in = incoming_.emplace_back();
    const bool known = status.MPI_TAG >= 0 && status.MPI_TAG < static_cast<int>(Kind::kinds);
    in.message = {status.MPI_SOURCE, known ? static_cast<Kind>(status.MPI_TAG) : Kind::alive, {}};
    // Into an empty buffer, receiving a message that is too long ends as an error.
    if (static_cast<std::size_t>(std::max(0, bytes)) > kMostBytes) bytes = 0;
    in.message.body.resize(static_cast<std::size_t>(std::max(0, bytes)));
    if (done(MPI_Irecv(in.message.body.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
                       MPI_COMM_WORLD, &in.request))) {
      return true;
    }
    incoming_.pop_back();
    return false;
  }
  // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

  int rank_ = 0, size_ = 1;
  std::vector<Peer> peers_;
  std::list<Outgoing> outgoing_, abandoned_;
  // A list, as the library keeps the address until it has received.
  std::list<Incoming> incoming_;
};

}  // namespace

tl::expected<std::unique_ptr<Peers>, std::string> join_mpi() {
  int level = 0;
  // One thread makes all calls.
  if (!done(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level))) {
    return tl::unexpected<std::string>("MPI does not start");
  }
  return std::make_unique<MpiPeers>();
}

std::string without_mpi() { return {}; }

std::string mpi_version() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  text.resize(static_cast<std::size_t>(std::max(0, length)));
  return text.substr(0, text.find(','));
}

}  // namespace lockbench::loadgen::cluster
