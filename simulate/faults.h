#pragma once

#include <deque>
#include <functional>
#include <istream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/fault.h"
#include "simulate/store_server.h"

namespace lockbench::simulate {

enum class Disturbance {
  store_kill,      ///< a server's machine dies and comes back
  store_freeze,    ///< a server stands still
  failover,        ///< a server dies, and a replica takes over
  partition,       ///< no messages between a share of the clients and servers
  partition_to,    ///< none to the servers
  partition_from,  ///< none to the clients
  delay,           ///< longer round trips
  client_pause,
  client_kill,  ///< a client dies, and another one takes its place
  clock_step,   ///< the time of day of a server jumps
  client_clock_step,
  eviction,  ///< a server removes a key for lack of memory
};
std::string_view to_string(Disturbance kind);

/// A fault that strikes at random times, or at one time.
struct RandomFault {
  Disturbance kind = Disturbance::store_kill;
  double share = 0.5;             ///< of a partition
  Duration amount{};              ///< of a delay or a step
  int servers = 1;                ///< struck at once
  bool holder = false;            ///< strikes a client that holds a lock
  double per_second = 0;          ///< how often
  std::optional<Duration> at{};   ///< or when, after the warm-up
  DurationDistribution length{};  ///< until it is healed
  bool lasts = false;             ///< to the end: it is not healed
};

/// What goes wrong in a simulation, beside the pauses of clients.
struct Faults {
  std::vector<RandomFault> random;
  double loss = 0;          ///< share of the packets
  double clock_drift = 0;   ///< the largest, as a share
  Duration clock_offset{};  ///< the largest, of the time of day

  /// Reads lines such as "failover 12/y 30s", "partition:0.3 1/d lognormal(1s,30s)",
  /// "clock-step:-5s 1/d", "clock-drift:200" (ppm), "clock-offset:50ms", "loss:0.001"; # begins a
  /// comment. The error names the line and what is allowed.
  static tl::expected<Faults, std::string> read(std::istream& file, const std::string& name);
  /// Of --fault.
  void add(const loadgen::Fault& fault);
  /// Whether some fault kills servers, or needs replicas.
  bool any(Disturbance kind) const;
};

/// What the player strikes.
struct Struck {
  World& world;
  Network& network;
  Nodes& nodes;
  std::vector<std::unique_ptr<Host>>& hosts;
  std::function<bool(int client)> holds;
  std::function<void(Disturbance kind, TimePoint until)> on_strike;
};

/// Plays the faults, and remembers the latest.
class FaultPlayer {
 public:
  FaultPlayer(const Faults& faults, Struck struck) : faults_(faults), struck_(std::move(struck)) {}
  FaultPlayer(const FaultPlayer&) = delete;
  FaultPlayer& operator=(const FaultPlayer&) = delete;

  /// `origin`: of the times of faults that strike at one time.
  void begin(TimePoint origin);
  /// Whether there was one of that kind.
  bool has_struck(Disturbance kind) const { return struck_kinds_.contains(kind); }
  /// The latest that was in force at some time since then.
  std::optional<Disturbance> latest_since(TimePoint since) const;

 private:
  struct Past {
    Disturbance kind;
    TimePoint at, until;
  };

  void await_next(const RandomFault& fault);
  void strike(const RandomFault& fault);
  void strike_servers(const RandomFault& fault, TimePoint until);
  void strike_client(const RandomFault& fault, TimePoint until);
  void heal(TimePoint when, std::function<void()> act);
  template <class T>
  std::size_t any_of(const T& all) {
    return struck_.world.random()() % all.size();
  }

  const Faults& faults_;
  const Struck struck_;
  std::deque<Past> past_;
  std::set<Disturbance> struck_kinds_;
};

}  // namespace lockbench::simulate
