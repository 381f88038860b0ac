#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "strategies/redis/client/connection.h"
#include "tests/support/sim_env.h"

namespace lockbench::redis {

/// A Redis server in memory, on simulated time, and the factory of the connections to it: what the
/// lock strategies send, with the real one's answers and failures. One thread; if nothing takes
/// time, its connections may be on several.
class FakeRedis : public ConnectionFactory {
 public:
  enum class Failure {
    not_sent,      ///< the connection breaks before the command leaves
    request_lost,  ///< unanswered, and without effect
    answer_lost,   ///< unanswered, but it took effect
    rejected,      ///< an error reply
  };

  explicit FakeRedis(SimClock& clock) : clock_(clock) {}

  std::unique_ptr<Connection> make(const Endpoint& endpoint, const Timeouts& timeouts,
                                   Env& env) override;
  std::unique_ptr<Subscriber> make_subscriber(const Endpoint& endpoint, const Timeouts& timeouts,
                                              Env& env) override;

  /// The n-th command from now on fails: 1 is the next.
  void fail(int n, Failure failure) { failures_[arrivals_ + n] = failure; }
  void refuse_connections(bool refuse) { refuses_ = refuse; }
  /// A new connection is there only so long after it was begun.
  void set_connect_time(Duration time) { connect_time_ = time; }
  /// Each command travels and each answer too: half of it either way.
  void set_round_trip(Duration round_trip) { round_trip_ = round_trip; }
  /// Each answer is ready to be read only so long after its command arrived.
  void set_answer_delay(Duration delay) { answer_delay_ = delay; }
  /// Called with each command that arrives, before it takes effect: a race's other party.
  void on_arrival(std::function<void(const std::string&)> action) {
    on_arrival_ = std::move(action);
  }
  /// As after a restart of the server.
  void forget_scripts() { scripts_.clear(); }

  /// What arrived since the last call, each as one line; scripts by their names.
  std::vector<std::string> take_commands();

  std::optional<std::string> value(const std::string& key);
  /// Nothing without the key, or if it does not expire.
  std::optional<Duration> ttl(const std::string& key);
  void set(const std::string& key, std::string value, std::optional<Duration> ttl = {});
  void erase(const std::string& key) { entries_.erase(key); }
  std::size_t keys() const { return entries_.size(); }

 private:
  friend class FakeRedisConnection;
  using Words = std::vector<std::string>;

  struct Entry {
    std::string value;
    WallTime expires = WallTime::max();
    std::map<std::string, std::int64_t> counts{};  ///< of a hash
  };

  /// What one connection has said between MULTI and EXEC.
  struct Transaction {
    bool open = false;
    bool aborted = false;  ///< a command was rejected: EXEC will be too
    std::vector<Words> queued;
  };

  StoreResult<Reply> arrive(const Words& command, Transaction& transaction);
  Reply execute(const Words& command, Transaction& transaction);
  Reply execute_one(const Words& command);
  Reply execute_set(const Words& command);
  Reply execute_script(const Words& command);
  Reply acquire_reentrant(const std::string& key, const std::string& owner, Duration ttl);
  Reply release_reentrant(const std::string& key, const std::string& owner, Duration ttl);
  Reply acquire_fenced(const std::string& key, const std::string& counter, const std::string& token,
                       Duration ttl);
  Reply expire(const std::string& key, Duration ttl);
  Reply remove(const Words& command);
  /// Null if it is not there, or no more.
  Entry* find(const std::string& key);

  SimClock& clock_;
  std::recursive_mutex mutex_;  ///< held while a command takes effect, which may cause another one
  std::map<std::string, Entry> entries_;
  std::set<std::string> scripts_;  ///< names of those that were sent by EVAL
  int arrivals_ = 0;
  std::map<int, Failure> failures_;
  std::vector<std::string> commands_;
  std::function<void(const std::string&)> on_arrival_;
  Duration round_trip_{}, answer_delay_{}, connect_time_{};
  bool refuses_ = false;
};

}  // namespace lockbench::redis
