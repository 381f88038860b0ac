#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "loadgen/cluster/wire.h"
#include "loadgen/record/counter.h"
#include "strategies/descriptor.h"

/// The messages between a play and its client processes, over a socket that preserves message
/// boundaries (SOCK_SEQPACKET). All processes of a machine share the time of BootClock.
namespace lockbench::hazards {

/// A fault at one command of a client.
struct CommandFault {
  enum class Action {
    die,          ///< SIGKILL to itself
    stall,        ///< SIGSTOP to itself: the whole process stops until SIGCONT
    drop_answer,  ///< the command takes effect, but the client gets no answer
  };
  enum class Place {
    before,  ///< before it is sent
    after,   ///< after its answer was read
  };
  Action action = Action::die;
  int command = 1;  ///< number of the command since arm(), from 1
  Place place = Place::after;
};

/// How one client of a play differs from the defaults.
struct ActorSettings {
  int number = 0;                       ///< client number within its process; 0: the next free one
  bool renews = true;                   ///< use the renewal timer, if the strategy has one
  bool renewal_stalls = false;          ///< nothing runs beside the client, so nothing is renewed
  bool behind_line = false;             ///< connect through proxies that can cut the network
  bool checks_fencing = false;          ///< its counter rejects stale fencing numbers
  std::string wait;                     ///< waiting policy; empty: the strategy's default
  std::optional<Duration> renew_cap{};  ///< longest total renewal of one lease
  std::optional<int> wait_replicas{};   ///< replicas that must acknowledge; empty: all
  /// Timeout for one node of a quorum; empty: the strategy's default. Long here, so that a slow
  /// answer on a busy machine does not count as a fault.
  std::optional<Duration> node_timeout = std::chrono::milliseconds(500);
  std::vector<std::size_t> members{};  ///< cluster members that it connects to; empty: all
};

/// The first message to a client.
struct ClientSetup {
  std::string strategy;
  std::string program{}, about{};  ///< of a client program: its command, and its answer to hello
  Duration ttl{};                  ///< of its locks, as far as known
  Endpoints endpoints;
  std::string counter;  ///< URL of the Redis with the protected counter
  std::map<std::string, std::string> environment{};  ///< more, for a client program
  ActorSettings settings;
};

/// Any further message to a client.
struct Request {
  enum class What {
    acquire,
    release,
    renew,
    belief,       ///< answered when the lease becomes invalid, at the latest after `within`
    read,         ///< reads the protected counter
    write,        ///< writes the value read, plus one
    arm,          ///< arms the fault
    shift_clock,  ///< moves the client's wall clock
    // Of a client program only:
    cancelled_release,  ///< a release that is cancelled after `within`
    work,               ///< keeps the application's thread busy for `within`
  };
  What what = What::acquire;
  int lease = -1;  ///< from the answer to the acquisition
  std::string key{};
  Duration ttl{};
  Duration within{};              ///< longest wait for the lock, or for its loss
  std::optional<TimePoint> at{};  ///< when to acquire; empty: immediately
  bool release_at_once = false;   ///< release before answering the acquisition
  CommandFault fault{};
  Duration by{};
};

/// How an acquisition ended, as its client reports it.
struct Grant {
  AcquireOutcome outcome = AcquireOutcome::failed;
  TimePoint asked_at{}, answered_at{};
  std::optional<TimePoint> valid_until{};  ///< empty if it does not expire or was not granted
  std::optional<std::uint64_t> fencing{};
  int lease = -1;
  int commands = 0;
  std::string reason{};

  bool granted() const { return outcome == AcquireOutcome::acquired; }
  /// The store gave no answer, so the state of the lock is unknown.
  bool unanswered() const {
    return outcome == AcquireOutcome::failed || outcome == AcquireOutcome::unknown;
  }
};

/// Whether a client still treats a lease as valid.
struct Belief {
  bool valid = false;
  /// When the client learned of the loss, or when the validity ends. Empty if no end is known.
  std::optional<TimePoint> until{};
};

/// Any message from a client. Of the members below `at`, only those that belong to the request are
/// set.
struct Answer {
  std::string error{};   ///< why the request failed; empty: it succeeded
  std::string cannot{};  ///< why this client cannot do that at all
  bool waiting = false;  ///< the lock is taken and the client waits: the real answer follows
  TimePoint at{};        ///< when the request was carried out
  Grant grant{};
  ReleaseOutcome released{};
  int commands = 0;  ///< of the release or renewal
  RenewOutcome renewed{};
  Belief belief{};
  std::uint64_t counter = 0;
  loadgen::WriteResult written{};
};

/// Sends a message of any of the three kinds. False if the other side is gone.
template <class Message>
bool send(int socket, const Message& message) {
  const std::string bytes = loadgen::cluster::to_bytes(message);
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
}

/// The next message. Empty if the other side is gone. Throws std::exception with the reason if it
/// is not a message of this kind.
template <class Message>
std::optional<Message> receive(int socket) {
  constexpr std::size_t kLongest = std::size_t{64} << 10;
  std::string bytes(kLongest, '\0');
  const ssize_t size = TEMP_FAILURE_RETRY(recv(socket, bytes.data(), bytes.size(), 0));
  if (size <= 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size));
  Message message;
  if (loadgen::cluster::from_bytes(bytes, message)) return message;
  throw std::runtime_error("it is no message of this kind");
}

/// Main loop of a client process: carries out the requests from the socket until the other side is
/// gone. Returns the exit code.
int serve_client(int socket);

}  // namespace lockbench::hazards
