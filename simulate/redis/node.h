#pragma once

#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulate/redis/model.h"
#include "simulate/store_server.h"

namespace lockbench::simulate {

/// What a Redis has on disk when its machine dies: nothing, or an append-only file with
/// appendfsync everysec or always.
enum class Persistence { none, everysec, always };

struct RedisSettings {
  int replicas = 0;
  Persistence persistence = Persistence::everysec;
  bool may_die = false;    ///< some fault kills it: only then it keeps a disk
  std::size_t memory = 0;  ///< maxmemory in bytes; 0: none
  Eviction eviction = Eviction::refuse;
  /// The processor's time for a command, and for each command of a script. By default those of the
  /// reference results' machine.
  Duration per_command = std::chrono::microseconds(4);
  /// How long a replica takes to execute what it got.
  DurationDistribution lag = DurationDistribution::exponential(std::chrono::microseconds(200));
};

/// A Redis server with its replicas, at one address: after a failover, clients reach the new
/// primary there.
class RedisNode final : public StoreServer {
 public:
  RedisNode(World& world, Network& network, int number, int region, RedisSettings settings);
  RedisNode(const RedisNode&) = delete;
  RedisNode& operator=(const RedisNode&) = delete;
  ~RedisNode() override;

  void restart() override;
  /// The replica with most of the data takes over.
  bool fail_over() override;
  /// This replica takes over; clients must connect again.
  void promote(std::size_t successor);
  /// The replica gets nothing more, until one takes over.
  void cut_off(std::size_t replica) { replicas_.at(replica).cut_off = true; }
  bool evict(bool only_volatile) override;
  bool remove(const std::string& key) override { return !ask({"DEL", key}).is_integer(0); }
  /// Changes that the death of its machine would lose now.
  std::size_t unsynced();
  /// The answer to another user's command, at once.
  Reply ask(std::initializer_list<std::string_view> command);
  std::vector<std::string> keys() const override { return data_.names(wall_now()); }

 private:
  struct Client;
  struct Replica {
    RedisModel data{};
    std::int64_t received = 0;  ///< changes executed
    std::int64_t acknowledged = 0;
    TimePoint last_arrival{};
    bool cut_off = false;
  };

  /// Null: the server does not know the connection any more.
  static Client* client_of(const std::shared_ptr<Wire>& wire);
  std::unique_ptr<Wire::Session> open_session() const override;
  bool take(const std::shared_ptr<Wire>& wire, std::string_view bytes) override;
  void work(const std::shared_ptr<Wire>& wire) override;
  void leave(const std::shared_ptr<Wire>& wire) override;
  /// Of `words_`; nothing if the command waits.
  std::optional<Reply> execute(const std::shared_ptr<Wire>& wire, const Reply& command);
  std::optional<Reply> wait_for_replicas(const std::shared_ptr<Wire>& wire);
  void block(const std::shared_ptr<Wire>& wire, Duration longest);
  void answer(const std::shared_ptr<Wire>& wire, const Reply& reply);
  void send(const std::shared_ptr<Wire>& wire, const Reply& reply);
  void serve_blocked();
  void leave_lists(const std::shared_ptr<Wire>& wire);
  int acknowledged(std::int64_t offset) const;
  std::int64_t publish(std::string_view channel, std::string_view message);
  void record(RedisModel::Write write);
  void replicate();
  void acknowledge(std::size_t replica, std::int64_t offset);
  void sync_disk();
  void begin_data();
  void break_all() override;

  const RedisSettings settings_;
  RedisModel data_;
  std::uint64_t waits_ = 0;
  std::map<ListName, std::deque<std::shared_ptr<Wire>>> blocked_;  ///< by BLPOP, in order
  std::vector<std::shared_ptr<Wire>> waiting_;                     ///< for replicas
  std::map<std::string, std::vector<std::shared_ptr<Wire>>, std::less<>> subscribers_;

  std::vector<Replica> replicas_;
  std::int64_t offset_ = 0;  ///< changes so far
  std::vector<RedisModel::Write> unsent_;
  RedisModel disk_;
  std::vector<std::pair<TimePoint, RedisModel::Write>> unsynced_;
  std::vector<std::string_view> words_;  ///< of the command under way; reused
};

}  // namespace lockbench::simulate
