#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "loadgen/run/demand.h"

namespace lockbench::loadgen {

/// Which clients have which locks and which they wait for, as far as the generator knows: what
/// decides on deadlocks, and counts them. For sections of several locks taken as drawn.
/// Thread-safe.
class WaitGraph {
 public:
  /// `queues`: the lock grants in the order of the requests, so that a client also waits for those
  /// that asked before it in a mode that excludes its own.
  WaitGraph(int clients, bool queues)
      : queues_(queues), clients_(static_cast<std::size_t>(clients)) {}

  /// The client begins a transaction, which is younger than all before. It keeps its age when it
  /// tries again.
  void begin(int client);
  /// Call before asking for a lock; then granted() or gave_up(). With wait_die it returns false,
  /// and the client must not ask, unless its transaction is older than all that have the lock, or
  /// wait for it, in a mode that excludes this one.
  bool waits(int client, const Wanted& wanted, OnDeadlock on_deadlock);
  void granted(int client);
  void gave_up(int client);
  /// Call before the release is sent.
  void released(int client, int key);
  /// Whether the client waits for itself, by way of others.
  bool in_cycle(int client) const;

 private:
  /// A client that has a lock or waits for it.
  struct Claim {
    int client = 0;
    Mode mode = Mode::exclusive;
    bool has = false;

    bool excludes(const Claim& other) const {
      return client != other.client && (mode == Mode::exclusive || other.mode == Mode::exclusive);
    }
  };
  struct Client {
    std::uint64_t begun = 0;
    int waits_for = kNothing;  ///< a key
  };
  static constexpr int kNothing = -1;

  /// Null: it has no claim on that key.
  const Claim* find(int client, int key) const;
  const std::vector<Claim>& claims(int key) const;
  void drop(int client, int key);
  std::uint64_t begun(int client) const { return clients_[static_cast<std::size_t>(client)].begun; }
  Client& at(int client) { return clients_[static_cast<std::size_t>(client)]; }

  const bool queues_;
  mutable std::mutex mutex_;
  std::uint64_t begun_ = 0;
  std::vector<Client> clients_;
  std::unordered_map<int, std::vector<Claim>>
      claims_;  ///< by key, as asked for; only keys that have some
};

}  // namespace lockbench::loadgen
