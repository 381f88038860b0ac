#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/wire.h"

namespace lockbench::simulate {

/// A server of a store, with one thread that serves one connection after the other, in the order in
/// which they sent something.
class StoreServer : public Server {
 public:
  StoreServer(World& world, Network& network, std::string_view store, int number, int region);
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  Clock clock;
  Duration per_request{};  ///< of its thread, for each turn of a connection

  void accept(const std::shared_ptr<Wire>& wire) final;
  void arrive(const std::shared_ptr<Wire>& wire, std::string bytes) final;
  void closed(const std::shared_ptr<Wire>& wire) final;

  // Faults.
  /// Its machine dies: connections break, and only what is on disk comes back.
  void kill();
  virtual void restart() = 0;
  void freeze() { frozen_ = true; }
  virtual void thaw();
  /// A replica takes over; clients must connect again. False without any.
  virtual bool fail_over() { return false; }
  /// Removes a random key; returns whether there was one.
  virtual bool evict(bool only_volatile) = 0;
  /// How long the other members take to have another leader.
  static constexpr Duration kElection = std::chrono::milliseconds(500);
  // Of the members of a cluster, from 0, which leads. The ports 1, 2 ... are theirs; at others,
  // each connection is to any of them.
  /// This follower dies and comes back at once with its data: only its connections are lost.
  void restart_follower(std::size_t member);
  /// The leader stands still, until fail_over() makes another one lead; and goes on.
  virtual void depose_leader() { kill(); }
  virtual void resume_deposed() {}
  /// Nothing passes between it and the others. If it leads, these elect another leader.
  virtual void isolate(std::size_t member) { cut_off(member, {}); }
  virtual void reunite() { apart_.reset(); }

  // By another user, at once.
  /// Removes a lock's data; returns whether there was some.
  virtual bool remove(const std::string& key) = 0;
  /// Ends the session of a lock's holder; returns whether there was one.
  virtual bool end_session(const std::string& /*key*/) { return false; }

  /// The names of its keys that have not expired, in order; of locks, if these have keys below
  /// them.
  virtual std::vector<std::string> keys() const = 0;
  /// How long its thread has worked.
  Duration worked() const { return worked_; }

 protected:
  virtual std::unique_ptr<Wire::Session> open_session() const = 0;
  /// Keeps what has arrived. Returns whether the connection begins to have work.
  virtual bool take(const std::shared_ptr<Wire>& wire, std::string_view bytes) = 0;
  /// Executes what the connection has sent, and answers when that is done.
  virtual void work(const std::shared_ptr<Wire>& wire) = 0;
  /// The connection has ended; it still has its session.
  virtual void leave(const std::shared_ptr<Wire>& /*wire*/) {}

  /// The connection has work.
  void schedule(const std::shared_ptr<Wire>& wire);
  /// The thread works on what it does now for so much longer.
  void spend(Duration time);
  /// When it has done what it does.
  TimePoint done_at() const { return std::max(busy_until_, world_.now()); }
  WallTime wall_now() const { return clock.wall(world_.now(), world_.carrier().wall_now()); }
  /// Ends the connection, after the answers under way.
  void hang_up(const std::shared_ptr<Wire>& wire);
  bool alive() const { return alive_; }
  bool frozen() const { return frozen_; }
  void come_back() { alive_ = true; }
  virtual void break_all();
  /// `waits`: for how long the others wait for the leader.
  void cut_off(std::size_t member, Duration waits);
  bool is_apart(std::size_t member) const { return apart_ == member; }
  /// Counts its processes: messages to an earlier one are in vain.
  std::uint64_t life() const { return life_; }

  World& world_;
  Network& network_;

 private:
  void serve(const std::shared_ptr<Wire>& wire);
  void await_turn();

  bool alive_ = true, frozen_ = false;
  std::optional<std::size_t> apart_;  ///< the member that is
  std::uint64_t life_ = 0;
  TimePoint busy_until_{};
  Duration worked_{};
  std::vector<std::shared_ptr<Wire>> wires_;
  std::deque<std::shared_ptr<Wire>> ready_;  ///< with commands, in order
};

/// The servers of a simulation, by their numbers.
using Nodes = std::vector<std::unique_ptr<StoreServer>>;

}  // namespace lockbench::simulate
